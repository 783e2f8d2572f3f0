// What an expression selects, and whether it may lawfully give nothing: by the grammar of Prometheus.
import { parser } from '@prometheus-io/lezer-promql';

/** Operators and functions that keep only what meets a condition, or that answer when there is nothing. */
const CONDITIONS = new Set(['And', 'Unless', 'Absent', 'AbsentOverTime']);
const COMPARISONS = new Set(['Eql', 'Neq', 'Gtr', 'Gte', 'Lss', 'Lte']);
/** The series that Prometheus keeps of alerts: there are none while nothing fires. */
const ALERTS = 'ALERTS';

/** `{selectors, conditional}` for each side of the outermost `or`; conditional ones keep only what meets a condition. */
export function branchesOf(expression) {
  return sides(parser.parse(expression).topNode).map((node) => {
    const selectors = new Set();
    let conditional = false;
    node.cursor().iterate((at) => {
      const text = () => expression.slice(at.from, at.to);
      if (CONDITIONS.has(at.name)) conditional = true;
      if (at.name === 'BinaryExpr' && compares(at.node)) conditional = true;
      if (at.name !== 'VectorSelector') return;
      if (text().startsWith(ALERTS)) conditional = true;
      selectors.add(text());
    });
    return { selectors: [...selectors], conditional };
  });
}

function compares(node) {
  let found = false;
  for (let child = node.firstChild; child; child = child.nextSibling) {
    if (COMPARISONS.has(child.name)) found = !node.getChild('BoolModifier');
  }
  return found;
}

function sides(node) {
  const inner = node.name === 'PromQL' || node.name === 'ParenExpr' ? node.firstChild : null;
  if (inner) return sides(inner);
  if (node.name === 'BinaryExpr' && node.getChild('Or')) return [...sides(node.firstChild), ...sides(node.lastChild)];
  return [node];
}
