// The connection to the viewer. It comes back by itself, but for a link that is not accepted and a run that has ended.
//
//   connecting ──let in──▶ ready ──closed──▶ away ──▶ connecting
//       └── refused: gone      └── the run has ended: over

const PROTOCOL = 3;
const WAITS_MS = [250, 500, 1000, 2000, 4000]; // before each attempt; the last one counts on, but after an end
const OVER = 1001, NOT_ADMITTED = 4001, FULL = 4002, RUBBISH = 4003, NO_CODEC = 4004;

export class Socket extends EventTarget {
  constructor(address, link) {
    super();
    this.address = address;
    this.link = link;
    this.attempts = 0;
    this.isReady = false;
    this.triesAfterEnd = 0;
  }

  // It emits "ready", "picture" with an ArrayBuffer, each message of the viewer by its type, and "phase" {words}: what to
  // tell the person; "" if all is well.
  open() {
    if (!this.link.token) {
      this.tell('This link has no token. Open the whole link that the run has printed.');
      return;
    }
    const socket = new WebSocket(this.address);
    socket.binaryType = 'arraybuffer';
    this.socket = socket;
    socket.onopen = () => this.say({
      jsonrpc: '2.0', id: 1, method: 'hello', params: {protocol: PROTOCOL, token: this.link.token, role: this.link.role},
    });
    socket.onmessage = ({data}) => (typeof data === 'string' ? this.read(JSON.parse(data)) : this.emit('picture', data));
    socket.onclose = ({code, reason}) => socket === this.socket && this.closed(code, reason);
  }

  say(message) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }
  sendBytes(bytes) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(bytes);
  }

  read(message) {
    if (message.id !== 1) {
      this.emit(message.type, message);
      return;
    }
    if (message.error) return; // the viewer closes next, and says why
    this.isReady = true;
    this.attempts = this.triesAfterEnd = 0;
    this.tell('');
    this.emit('ready', message.result);
  }

  closed(code, reason) {
    this.isReady = false;
    this.emit('closed', null);
    if (code === NOT_ADMITTED) this.tell('The run does not accept this link. Open the link that it has printed.');
    else if (code === FULL) this.tell('All places of the run are taken. Close another page of it, and reload this one.');
    else if (code === OVER || this.triesAfterEnd > 0) this.end();
    else if (code === RUBBISH || code === NO_CODEC) this.tell(`The viewer has closed this page: ${reason}.`);
    else this.comeBack();
  }

  // A handler that starts again has its page again, with the same link.
  end() {
    this.tell('The run has ended. A new run prints a new link.');
    if (++this.triesAfterEnd <= WAITS_MS.length) setTimeout(() => this.open(), WAITS_MS[this.triesAfterEnd - 1]);
  }

  comeBack() {
    const wait = WAITS_MS[Math.min(this.attempts++, WAITS_MS.length - 1)];
    this.tell('The connection is lost. The page tries again by itself.');
    setTimeout(() => this.open(), wait * (0.75 + Math.random() / 2)); // many pages must not come back in one moment
  }

  tell(words) { this.emit('phase', {words}); }
  emit(name, detail) { this.dispatchEvent(new CustomEvent(name, {detail})); }
}
