import { formatNumber } from '../../lib/duration';
import { Series } from '../../lib/series.svelte';
import type { ServerStatus } from '../../machine/status';
import { formatBytes } from './bytes';
import { UseRate } from './use_rate';

/** A quantity of the server over the last minutes. */
export interface LoadQuantity {
  readonly title: string;
  /** What the number means, as the end of a sentence. */
  readonly note: string;
  readonly series: Series;
  readonly format: (value: number) => string;
  /** The least end of the axis, so that noise does not look like a mountain. */
  readonly least: number;
}

const percent = (value: number) => `${value < 9.95 ? value.toFixed(1) : Math.round(value)} %`;
const milliseconds = (value: number) => `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ms`;

/** What the status said about the load since the view was opened. */
export class LoadHistory {
  readonly quantities: readonly LoadQuantity[];

  #cpu = new Series('cpu');
  #memory = new Series('memory');
  #lag = new Series('lag');
  #calls = new Series('calls');
  #load = new Series('load');
  #cpuRate = new UseRate();
  #callRate = new UseRate();
  #uptime = NaN;

  constructor() {
    this.quantities = [
      { title: 'Processor', note: 'of one core', series: this.#cpu, format: percent, least: 10 },
      { title: 'Memory', note: 'of the server', series: this.#memory, format: formatBytes, least: 1e8 },
      { title: 'Loop lag', note: 'longest of 2 s', series: this.#lag, format: milliseconds, least: 20 },
      { title: 'Calls', note: 'a second', series: this.#calls, format: (value) => formatNumber(round(value)), least: 5 },
      { title: 'Load of the computer', note: 'processes', series: this.#load, format: (value) => value.toFixed(1), least: 1 },
    ];
  }

  /** `at` is when the status was received, in milliseconds of `performance.now()`. */
  record(server: ServerStatus, at: number): void {
    // The machine samples less often than it is asked.
    if (server.uptime_seconds === this.#uptime) return;
    if (server.uptime_seconds < this.#uptime) this.#break(at);
    this.#uptime = server.uptime_seconds;
    const cpu = this.#cpuRate.add(server.uptime_seconds, server.cpu_seconds);
    const calls = this.#callRate.add(server.uptime_seconds, server.calls_started);
    if (cpu !== null) this.#cpu.add(100 * cpu, at);
    if (calls !== null) this.#calls.add(calls, at);
    if (server.loop_lag_seconds !== null) this.#lag.add(1000 * server.loop_lag_seconds, at);
    this.#memory.add(server.memory_bytes, at);
    this.#load.add(server.computer.load, at);
  }

  /** Another server runs: its lines do not continue the lines of the last one. */
  #break(at: number): void {
    for (const { series } of this.quantities) series.add(NaN, at);
  }
}

function round(value: number): number {
  return value < 9.95 ? Math.round(10 * value) / 10 : Math.round(value);
}
