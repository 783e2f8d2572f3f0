// A gauge in the manner of Grafana's: an arc of 250 degrees with the thresholds outside. Grafana's is not published.
import React from 'react';
import { formattedValueToString, ThresholdsMode } from '@grafana/data';

const FROM = (-125 * Math.PI) / 180;
const TO = (125 * Math.PI) / 180;

function arc(cx, cy, radius, from, to) {
  const at = (angle) => `${cx + radius * Math.sin(angle)} ${cy - radius * Math.cos(angle)}`;
  return `M ${at(from)} A ${radius} ${radius} 0 ${to - from > Math.PI ? 1 : 0} 1 ${at(to)}`;
}

export function Gauge({ value, field, width, height, named, theme }) {
  const min = field.min ?? 0;
  const max = field.max ?? 100;
  const label = named && value.title ? 18 : 0;
  const radius = Math.max(10, Math.min(width / 2 - 6, (height - label) / 1.62 - 6));
  const cx = width / 2;
  const cy = radius + 6;
  const thick = radius * 0.22;
  const angle = (number) => FROM + (TO - FROM) * Math.min(1, Math.max(0, (number - min) / (max - min || 1)));
  const steps = field.thresholds?.steps ?? [];
  const bound = (step) => (field.thresholds.mode === ThresholdsMode.Percentage ? min + (step.value / 100) * (max - min) : step.value);
  const text = formattedValueToString(value);
  return (
    <svg width={width} height={height} role="img" aria-label={`${value.title ?? ''} ${text}`}>
      <path d={arc(cx, cy, radius - thick / 2 - 5, FROM, TO)} fill="none" stroke={theme.colors.background.secondary} strokeWidth={thick} />
      {Number.isFinite(value.numeric) && angle(value.numeric) > FROM && (
        <path d={arc(cx, cy, radius - thick / 2 - 5, FROM, angle(value.numeric))} fill="none" stroke={value.color} strokeWidth={thick} />
      )}
      {steps.map((step, i) => {
        const from = i ? angle(bound(step)) : FROM;
        const to = i + 1 < steps.length ? angle(bound(steps[i + 1])) : TO;
        const color = theme.visualization.getColorByName(step.color);
        return to > from && <path key={i} d={arc(cx, cy, radius - 1, from, to)} fill="none" stroke={color} strokeWidth="3" />;
      })}
      <text x={cx} y={cy + radius * 0.1} textAnchor="middle" fill={value.color} fontSize={Math.min(radius * 0.42, (radius * 2.2) / text.length)} fontWeight="500">
        {text}
      </text>
      {label > 0 && (
        <text x={cx} y={height - 4} textAnchor="middle" fill={theme.colors.text.primary} fontSize="14">
          {value.title}
        </text>
      )}
    </svg>
  );
}
