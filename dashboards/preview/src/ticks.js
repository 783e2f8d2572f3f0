// Round numbers for an axis.

/** About `wanted` round numbers from `low` on, the last at or above `high`; `binary` ones are multiples of a power of 2. */
export function niceTicks(low, high, wanted, binary = false) {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = binary ? 2 ** Math.ceil(Math.log2(rough)) : power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10);
  const count = Math.ceil((high - low) / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, i) => low + i * step);
}
