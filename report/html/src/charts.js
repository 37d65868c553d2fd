// The charts of the page: made when they come near the screen, drawn again when the look or the width changes.
import * as echarts from 'echarts/core';
import { CustomChart, HeatmapChart, LineChart, ScatterChart } from 'echarts/charts';
import { DataZoomComponent, GridComponent, MarkAreaComponent, MarkLineComponent, TooltipComponent,
         VisualMapComponent } from 'echarts/components';
import { CanvasRenderer } from 'echarts/renderers';
import { colours } from './look.js';

echarts.use([CustomChart, HeatmapChart, LineChart, ScatterChart, DataZoomComponent, GridComponent, MarkAreaComponent,
             MarkLineComponent, TooltipComponent, VisualMapComponent, CanvasRenderer]);

export const clipToRectangle = echarts.graphic.clipRectByRect;

const charts = [];

/** A chart in `host`. `options(look, width)` gives what ECharts draws; `ready(chart)` is called once. */
export function addChart(host, options, ready = () => {}) {
  const entry = { host, options, chart: null };
  const draw = () => entry.chart.setOption({ animation: false, ...options(colours(), host.clientWidth) }, true);
  entry.redraw = () => entry.chart && draw();
  entry.begin = () => {
    if (entry.chart) return;
    entry.chart = echarts.init(host, null, { renderer: 'canvas' });
    entry.chart.on('finished', () => { entry.drawn ??= performance.now(); });
    draw();
    ready(entry.chart);
    watcher.unobserve(host);
    sizes.observe(host);
  };
  charts.push(entry);
  watcher.observe(host);
  return entry;
}

const entryOf = (host) => charts.find((entry) => entry.host === host);

const watcher = new IntersectionObserver((changes) => {
  for (const change of changes) if (change.isIntersecting) entryOf(change.target)?.begin();
}, { rootMargin: '400px' });

const sizes = new ResizeObserver((changes) => {
  for (const change of changes) {
    const { chart, redraw } = entryOf(change.target);
    const width = change.target.clientWidth;
    if (width > 0 && width !== chart.getWidth()) {
      chart.resize();
      redraw();
    }
  }
});

export function redrawAll() {
  for (const entry of charts) entry.redraw();
}

export function forgetRemovedCharts() {
  for (let i = charts.length - 1; i >= 0; --i) {
    if (charts[i].host.isConnected) continue;
    watcher.unobserve(charts[i].host);
    sizes.unobserve(charts[i].host);
    charts[i].chart?.dispose();
    charts.splice(i, 1);
  }
}

/** Before paper: every chart is made, at the width that it has there. */
export function beginAll() {
  for (const entry of charts) {
    entry.begin();
    entry.chart.resize();
    entry.redraw();
  }
}

globalThis.vramlabCharts = charts;  // for tests and for the curious
