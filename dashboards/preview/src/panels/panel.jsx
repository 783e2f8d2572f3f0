// One panel: Grafana's frame around it, its data loaded, the widget of its type, and what is wrong with it noted.
import React from 'react';
import { PanelChrome } from '@grafana/ui';
import { heldBy, isEmpty, loaded } from '../load.js';
import { problem, state } from '../problems.js';
import { substituted } from '../variables.js';
import { BarChartPanel } from './barchart.jsx';
import { HeatmapPanel } from './heatmap.jsx';
import { StateTimelinePanel } from './statetimeline.jsx';
import { TablePanel } from './table.jsx';
import { TextPanel } from './text.jsx';
import { TimeSeriesPanel } from './timeseries.jsx';
import { BarGaugePanel, GaugePanel, StatPanel } from './values.jsx';

const WIDGETS = {
  timeseries: TimeSeriesPanel,
  stat: StatPanel,
  gauge: GaugePanel,
  bargauge: BarGaugePanel,
  table: TablePanel,
  barchart: BarChartPanel,
  heatmap: HeatmapPanel,
  'state-timeline': StateTimelinePanel,
  text: TextPanel,
};
const ON_CANVAS = new Set(['timeseries', 'heatmap', 'state-timeline']);
/** Widgets that say themselves that there is nothing. */
const SHOW_NOTHING = new Set(['stat', 'gauge', 'bargauge', 'text']);

export function Panel({ panel, page, width, height, onDrawn }) {
  const { variables } = page;
  const [data, setData] = React.useState(null);
  const title = substituted(panel.title, variables);
  const name = title || `panel ${panel.id}`;
  const Widget = WIDGETS[panel.type];

  React.useEffect(() => {
    if (!Widget) {
      problem(name, `the preview cannot draw a panel of the type ${panel.type}`);
      return onDrawn(panel, null);
    }
    if (panel.repeat) problem(name, `repeats by ${panel.repeat}, which the preview does not do`);
    loaded(panel, page, width).then(setData, (error) => {
      problem(name, `cannot be loaded: ${error.stack}`);
      onDrawn(panel, null);
    });
  }, []);
  React.useEffect(() => {
    if (data) check(panel, name, data, page).then(() => onDrawn(panel, data));
  }, [data]);

  const shared = { panel, range: page.range, timeZone: page.timeZone, annotations: page.annotations };
  const replace = (text) => substituted(text, variables);
  return (
    <PanelChrome
      title={title}
      description={panel.description ? replace(panel.description) : undefined}
      width={width}
      height={height}
      displayMode={panel.transparent ? 'transparent' : 'default'}
      padding={panel.type === 'table' ? 'none' : 'md'}
      statusMessage={data?.error}
    >
      {(w, h) => {
        if (!Widget) return <Nothing text={`A ${panel.type} panel, which this preview cannot draw`} />;
        if (!data) return null;
        if (!SHOW_NOTHING.has(panel.type) && isEmpty(data.frames)) return <Nothing text={data.fieldConfig.defaults.noValue || 'No data'} />;
        return (
          <Boundary name={name}>
            <Widget {...shared} data={data} replace={replace} width={w} height={h} />
          </Boundary>
        );
      }}
    </PanelChrome>
  );
}

/** A panel without data is fine when its queries filter and the dashboard says so, or when the recording has no such series. */
async function check(panel, name, data, page) {
  const empty = data.expressions.length > 0 && isEmpty(data.frames);
  const said = data.fieldConfig.defaults.noValue;
  state.panels.push({ id: panel.id, title: name, type: panel.type, canvas: ON_CANVAS.has(panel.type) && !empty, empty, said });
  if (!empty || data.error) return;
  const held = await heldBy(data.expressions, page, Boolean(said));
  if (held.length) problem(name, `shows "${said || 'No data'}", and the recording holds ${held.join(', ')}`);
}

function Nothing({ text }) {
  return <div style={{ height: '100%', display: 'flex', alignItems: 'center', justifyContent: 'center', fontSize: 18, opacity: 0.7 }}>{text}</div>;
}

class Boundary extends React.Component {
  state = {};

  static getDerivedStateFromError(error) {
    return { error };
  }

  componentDidCatch(error) {
    problem(this.props.name, `cannot be drawn: ${error.message}`);
  }

  render() {
    return this.state.error ? <Nothing text={String(this.state.error)} /> : this.props.children;
  }
}
