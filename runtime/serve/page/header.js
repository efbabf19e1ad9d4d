// The header: the pipeline's name, its state, its clocks, the role of this page, and the button that ends the run.
import {element, show} from './elements.js';
import {count, elapsed, rate} from './numbers.js';

const STATES = {starts: 'starting', runs: 'running', drains: 'draining', // of the run
                away: 'away', gone: 'not connected', over: 'ended'};     // of the connection
const CLOCKS_MAX = 4; // a run may have one for each stream

export class Header {
  constructor(connection) {
    this.connection = connection;
    const part = (id) => document.getElementById(id);
    Object.assign(this, {pipeline: part('pipeline'), state: part('state'), time: part('elapsed'), role: part('role'),
                         clocks: part('clocks'), pages: part('pages'), stop: part('stop'), question: part('stop-question')});
    this.stop.onclick = () => this.question.showModal();
    part('stop-no').onclick = () => this.question.close();
    part('stop-yes').onclick = () => this.end();
    this.clockViews = [];
  }

  async end() {
    this.question.close();
    this.stop.disabled = true;
    try {
      await this.connection.call('stop');
    } catch {
      this.stop.disabled = !this.connection.maySteer; // the connection's phase says why
    }
  }

  greet({pipeline, elapsed_s: elapsedS}) {
    show(this.pipeline, pipeline);
    this.pipeline.title = pipeline;
    document.title = `${pipeline} · millrace`;
    this.showTime(elapsedS);
  }

  // Pages of handlers, which take the token of this one.
  showPages(pages) {
    this.pages.replaceChildren(...pages.map(({title, path}) =>
      element('a', {href: path + location.hash, textContent: title, className: 'badge'})));
  }

  showPhase(phase) {
    const {isReady, role} = this.connection;
    if (!isReady) this.showState(phase === 'connecting' ? '' : phase);
    show(this.role, isReady ? {steer: 'may steer', watch: 'only watches'}[role] : '');
    this.stop.hidden = role !== 'steer' || phase === 'gone' || phase === 'over';
    this.stop.disabled = !this.connection.maySteer;
    if (!this.connection.maySteer && this.question.open) this.question.close();
  }

  showState(state) {
    show(this.state, STATES[state] ?? state);
    this.state.dataset.state = state;
    if (state === 'drains') this.stop.disabled = true;
  }

  showTime(seconds) { show(this.time, elapsed(seconds)); }

  beginClocks(plan, columns) {
    this.at = Object.fromEntries(columns.map((name, n) => [name, n]));
    this.clockViews = plan.clocks.slice(0, CLOCKS_MAX).map(() => element('li', {className: 'number'}));
    this.names = plan.clocks.map(({name}) => name);
    const others = plan.clocks.length - CLOCKS_MAX;
    this.clocks.replaceChildren(...this.clockViews);
    if (others > 0) this.clocks.append(element('li', {}, `and ${others} more clocks`));
  }

  showClocks(rows) {
    this.clockViews.forEach((view, n) => {
      const row = rows[n], {at} = this;
      const late = row[at.late] ? ` · ${count(row[at.late])} late` : '';
      const skipped = row[at.skipped] ? ` · ${count(row[at.skipped])} skipped` : '';
      const name = this.names[n] ? `${this.names[n]}: ` : '';
      show(view, `${name}${row[at.ticks]} ticks · ${rate(row[at.per_s])}${late}${skipped}`);
    });
  }
}
