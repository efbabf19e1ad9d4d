// One preview: a card with what an output has, its tick and its age. It asks the run for a tap and acknowledges each
// sample once it is drawn; the run sends the next one after that, so a slow page gets fewer and never old ones.
import {element, show} from './elements.js';
import {rate} from './numbers.js';
import {refusalView} from './refusal.js';
import {makeView} from './sample_views.js';

const HZ = 10;
const WIDTH = 480, LARGE_WIDTH = 960; // of pictures, in pixels that travel

export class Preview {
  // `outputs`: [{output, stream}], the same output of each stream. `onState(preview)` is called once it was opened,
  // refused or closed.
  constructor(connection, {box, port, outputs, onState}) {
    Object.assign(this, {connection, box, port, outputs, onState});
    this.output = outputs[0].output;
    this.tap = null;
    this.isLarge = false;
    this.isClosed = false;
    this.drawn = 0;
    this.makeCard();
  }

  makeCard() {
    this.title = element('h3', {title: this.output}, `${this.box.name}.${this.port}`);
    this.size = element('button', {type: 'button', className: 'size', title: 'a larger picture',
                                   'aria-pressed': 'false', onclick: () => this.resize()}, 'large');
    const close = element('button', {type: 'button', className: 'close', 'aria-label': 'close this preview',
                                     onclick: () => this.close()}, '×');
    const isRead = this.box.outputs.some(({name}) => name === this.port);
    const words = isRead ? 'waiting for a value …' : 'waiting for a value; nobody reads this output, so it may stay empty …';
    this.body = element('div', {className: 'preview-body'}, element('p', {className: 'note'}, words));
    this.tickText = element('span', {className: 'preview-tick number'});
    this.words = element('span', {className: 'preview-words'});
    this.age = element('span', {className: 'preview-age number'});
    const head = element('header', {className: 'preview-head'}, this.title, this.size, close);
    if (this.outputs.length > 1) this.title.after(this.streamChoice());
    const foot = element('footer', {className: 'preview-foot'}, this.tickText, this.words, this.age);
    this.root = element('article', {className: 'preview', 'data-output': this.output,
                                    'aria-label': `preview of ${this.output}`}, head, this.body, foot);
  }

  streamChoice() {
    const choice = element('select', {'aria-label': 'stream', onchange: () => {
      this.output = this.root.dataset.output = choice.value;
      this.title.title = this.output;
      this.view = null; // no picture of another stream under this one's name
      this.body.replaceChildren(element('p', {className: 'note'}, 'waiting for a value …'));
      this.start();
    }}, ...this.outputs.map(({output, stream}) => element('option', {value: output}, stream)));
    return choice;
  }

  // Asks for samples; also after the connection has come back, and for another stream or width.
  async start() {
    this.stop();
    this.sample = null;
    const turn = this.turn = {};
    const params = {output: this.output, width: this.isLarge ? LARGE_WIDTH : WIDTH, hz: HZ};
    try {
      const {tap} = await this.connection.call('tap', params);
      if (turn === this.turn && !this.isClosed) this.tap = tap;
      else this.connection.send('untap', {tap});
      this.refusal = null;
    } catch (refusal) {
      if (turn !== this.turn || !this.connection.isReady) return; // it starts again once the run is back
      this.refusal = refusal;
      this.view = null;
      this.size.hidden = true;
      this.body.replaceChildren(refusalView(refusal));
      for (const text of [this.tickText, this.words, this.age]) show(text, '');
    }
    this.onState(this);
  }

  stop() {
    this.turn = null;
    if (this.tap !== null) this.connection.send('untap', {tap: this.tap});
    this.tap = null;
  }

  // The taps of a connection end with it.
  forgetTap() {
    this.tap = null;
    this.turn = null;
  }

  close() {
    this.isClosed = true;
    this.stop();
    this.root.remove();
    this.onState(this);
  }

  resize() {
    this.isLarge = !this.isLarge;
    this.size.setAttribute('aria-pressed', String(this.isLarge));
    this.root.classList.toggle('large', this.isLarge);
    this.start();
  }

  // Browsers draw nothing in a page that nobody sees: the acknowledgement waits until it is seen again.
  take(sample) {
    const {tap} = this;
    requestAnimationFrame(() => {
      if (this.tap !== tap || this.isClosed) return;
      this.draw(sample);
      this.connection.send('ack', {tap});
    });
  }

  draw(sample) {
    const now = performance.now();
    this.rate = this.sample ? 0.8 * (this.rate ?? HZ) + 0.2 * 1000 / Math.max(1, now - this.drawnAt) : undefined;
    this.drawnAt = now;
    this.sample = sample;
    this.body.classList.toggle('empty', !sample.hasValue);
    if (sample.hasValue) this.drawValue(sample);
    this.root.dataset.tick = sample.tick;
    show(this.tickText, `tick ${sample.tick}`);
    this.showAge();
  }

  drawValue(sample) {
    if (!sample.kind) {
      const words = 'This page does not know values of this kind. Reload it.';
      this.body.replaceChildren(element('p', {className: 'note'}, words));
      return;
    }
    if (!this.view || this.viewKind !== sample.kind) {
      this.view = makeView(sample.kind);
      this.viewKind = sample.kind;
      this.body.replaceChildren(this.view.root);
      this.size.hidden = sample.kind !== 'picture';
    }
    this.view.draw(sample);
    show(this.words, this.view.words(sample));
  }

  // Since the sample was drawn: a preview that stands still says so.
  showAge() {
    if (!this.sample) return;
    const seconds = (performance.now() - this.drawnAt) / 1000;
    const nothing = this.sample.hasValue ? '' : 'no value on this tick, ';
    const speed = this.rate && seconds < 1 ? `, ${rate(this.rate)}` : '';
    show(this.age, `${nothing}${seconds.toFixed(1)} s ago${speed}`);
  }
}
