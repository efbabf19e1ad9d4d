// The figures over the picture: pictures and bytes a second, and where the time of a picture goes.

const KEPT = 120, CLOCKS_KEPT = 16;

const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor(sorted.length / 2)] : 0;
};

export class Figures {
  constructor(list) {
    this.list = list;
    this.drawn = 0;       // pictures since the page began
    this.passedOver = 0;
    this.failed = 0;
    this.stills = 0;
    this.stages = [];     // of the last pictures: {encode, wire, decode, wait}, milliseconds
    this.arrivals = [];   // {ms, size}
    this.clocks = [];     // {offset, trip}: the viewer's seconds minus the page's
    this.answered = [];   // milliseconds from an event to the picture that answers it
    this.sentAt = new Map();
    setInterval(() => this.show(), 500);
  }

  // The offset of the fastest of the last round trips is the most certain one.
  pong(message) {
    const now = performance.now() / 1000;
    this.clocks.push({offset: message.seconds - (now + message.at) / 2, trip: now - message.at});
    if (this.clocks.length > CLOCKS_KEPT) this.clocks.shift();
  }
  get offset() { return this.clocks.reduce((best, one) => (one.trip < best.trip ? one : best), {trip: Infinity, offset: NaN}).offset; }

  sent(seq) {
    this.sentAt.set(seq, performance.now());
    if (this.sentAt.size > KEPT) this.sentAt.delete(this.sentAt.keys().next().value);
  }

  came(picture) {
    this.arrivals.push({ms: performance.now(), size: picture.size});
    const since = performance.now() - 2000;
    while (this.arrivals[0]?.ms < since) this.arrivals.shift();
  }

  done(picture) {
    ++this.drawn;
    if (picture.isStill) { // the time since it came is mostly the rest
      ++this.stills;
      this.forget(picture.answers);
      return;
    }
    const cameMs = (picture.seconds - this.offset) * 1000;
    this.stages.push({
      encode: picture.encodedMs,
      wire: Math.max(0, picture.receivedMs - cameMs - picture.encodedMs), // as right as the clocks are known
      decode: picture.decodedMs - picture.receivedMs, wait: picture.drawnMs - picture.decodedMs,
    });
    if (this.stages.length > KEPT) this.stages.shift();
    const at = this.sentAt.get(picture.answers);
    if (at === undefined) return;
    this.forget(picture.answers);
    this.answered.push(picture.drawnMs - at);
    if (this.answered.length > KEPT) this.answered.shift();
  }

  // Events up to this one are answered.
  forget(answered) {
    for (const seq of [...this.sentAt.keys()]) if (seq <= answered) this.sentAt.delete(seq);
  }

  get now() {
    const stage = (name) => median(this.stages.map((one) => one[name]));
    const bytes = this.arrivals.reduce((sum, one) => sum + one.size, 0);
    return {
      rate: this.arrivals.length / 2, bytesPerSecond: bytes / 2, encode: stage('encode'), wire: stage('wire'),
      decode: stage('decode'), wait: stage('wait'), answer: median(this.answered),
      drawn: this.drawn, passedOver: this.passedOver, failed: this.failed, stills: this.stills,
    };
  }

  show() {
    if (this.list.hidden) return;
    const {rate, bytesPerSecond, encode, wire, decode, wait, answer} = this.now;
    const ms = (value) => (Number.isFinite(value) ? `${value.toFixed(1)} ms` : '…');
    const rows = [
      ['pictures', `${rate.toFixed(1)} /s`], ['bytes', `${(bytesPerSecond / 1000).toFixed(0)} kB/s`], ['encode', ms(encode)],
      ['wire', ms(wire)], ['decode', ms(decode)], ['wait for the screen', ms(wait)],
      ['in all', ms(encode + wire + decode + wait)], ['answer to the hand', answer ? ms(answer) : '…'],
    ];
    this.list.replaceChildren(...rows.flatMap(([name, value]) => {
      const term = document.createElement('dt'), said = document.createElement('dd');
      term.textContent = name;
      said.textContent = value;
      return [term, said];
    }));
  }
}
