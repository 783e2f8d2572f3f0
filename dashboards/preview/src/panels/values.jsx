// Panels that show single values: stat and bar gauge with Grafana's widgets, gauge drawn here.
import React from 'react';
import { getDisplayValueAlignmentFactors, getFieldDisplayValues, VizOrientation } from '@grafana/data';
import { BarGauge, BigValue, BigValueTextMode, useTheme2, VizRepeater } from '@grafana/ui';
import { Gauge } from './gauge.jsx';

/** The values of a panel after its reduction, with sparklines where asked for. */
function valuesOf({ panel, data, range, timeZone, theme, sparkline }) {
  const values = getFieldDisplayValues({
    data: data.frames,
    fieldConfig: data.fieldConfig,
    reduceOptions: { calcs: ['lastNotNull'], values: false, fields: '', ...panel.options?.reduceOptions },
    replaceVariables: data.replace,
    sparkline,
    percentChange: panel.options?.showPercentChange,
    theme,
    timeZone,
  });
  for (const value of values) if (value.sparkline) value.sparkline.timeRange = range;
  return values;
}

function Values({ draw, sparkline = false, autoGrid = false, itemSpacing = 8, ...props }) {
  const theme = useTheme2();
  const { panel, width, height, data } = props;
  return (
    <VizRepeater
      getValues={() => valuesOf({ ...props, theme, sparkline })}
      getAlignmentFactors={getDisplayValueAlignmentFactors}
      renderValue={(at) => draw(at, theme)}
      width={width}
      height={height}
      source={data}
      autoGrid={autoGrid}
      itemSpacing={itemSpacing}
      renderCounter={0}
      orientation={panel.options?.orientation ?? VizOrientation.Auto}
      minVizWidth={panel.options?.minVizWidth}
      minVizHeight={panel.options?.minVizHeight}
      maxVizHeight={panel.options?.maxVizHeight}
    />
  );
}

export function StatPanel(props) {
  const { panel, data } = props;
  const options = { colorMode: 'value', graphMode: 'area', justifyMode: 'auto', textMode: 'auto', wideLayout: true, ...panel.options };
  const named = options.textMode === BigValueTextMode.Auto && (data.fieldConfig.defaults.displayName || !panel.title);
  return (
    <Values
      {...props}
      autoGrid
      itemSpacing={3}
      sparkline={options.graphMode !== 'none'}
      draw={({ value, alignmentFactors, width, height, count }, theme) => (
        <BigValue
          value={value.display}
          count={count}
          sparkline={value.sparkline}
          colorMode={options.colorMode}
          graphMode={options.graphMode}
          justifyMode={options.justifyMode}
          textMode={named ? BigValueTextMode.ValueAndName : options.textMode}
          alignmentFactors={alignmentFactors}
          text={options.text}
          disableWideLayout={!options.wideLayout}
          percentChangeColorMode={options.percentChangeColorMode}
          width={width}
          height={height}
          theme={theme}
        />
      )}
    />
  );
}

export function BarGaugePanel(props) {
  const options = { displayMode: 'gradient', showUnfilled: true, valueMode: 'color', namePlacement: 'auto', ...props.panel.options };
  return (
    <Values
      {...props}
      itemSpacing={options.displayMode === 'lcd' ? 2 : 10}
      draw={({ value, alignmentFactors, orientation, width, height, count }, theme) => (
        <BarGauge
          value={value.display}
          field={value.field}
          display={value.view?.getFieldDisplayProcessor(value.colIndex)}
          orientation={orientation}
          text={options.text}
          theme={theme}
          itemSpacing={options.displayMode === 'lcd' ? 2 : 10}
          displayMode={options.displayMode}
          alignmentFactors={count > 1 ? alignmentFactors : undefined}
          showUnfilled={options.showUnfilled}
          valueDisplayMode={options.valueMode}
          namePlacement={options.namePlacement}
          width={width}
          height={height}
        />
      )}
    />
  );
}

export function GaugePanel(props) {
  return (
    <Values
      {...props}
      autoGrid
      draw={({ value, width, height, count }, theme) => (
        <Gauge value={value.display} field={value.field} width={width} height={height} named={count > 1} theme={theme} />
      )}
    />
  );
}
