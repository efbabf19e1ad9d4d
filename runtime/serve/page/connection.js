// The connection to the run: a WebSocket with JSON-RPC messages that comes back by itself.
//
//   connecting ──hello answered──▶ ready ──closed──▶ away ──▶ connecting
//       ├── refused, full, old ──▶ gone: only a person tries again
//       └── the run has ended ──▶ over: a new run has a new link
import {Refusal} from './refusal.js';

const PROTOCOL = 3;
const WAITS_MS = [250, 500, 1000, 2000, 4000]; // before each attempt; the last one counts on
const PROBABLY_OVER = 4;                       // so many attempts in vain: the run is likely gone

// Close codes of the server.
const OVER = 1001, NOT_ADMITTED = 4001, FULL = 4002;
const OLD_PAGE = 'MR0125';

export class Connection extends EventTarget {
  constructor(address, link) {
    super();
    this.address = address;
    this.link = link;
    this.role = 'watch';   // as granted
    this.welcome = null;   // the first answer to hello
    this.phase = 'idle';
    this.attempts = 0;     // since the last answer
    this.isDraining = false;
    this.waiting = new Map(); // requests without an answer, by id
    this.nextId = 1;
  }

  // It emits "phase" {phase, words, refusal, reason}, "ready" with the answer to hello, "sample" with bytes, and each
  // event of the run under its own name, with its params.
  open() {
    clearTimeout(this.timer);
    if (!this.link.token) {
      this.tell('gone', 'This link has no token. Open the whole link that the run has printed.');
      return;
    }
    if (this.phase !== 'away') this.tell('connecting', 'Connecting to the run …');
    const socket = new WebSocket(this.address);
    socket.binaryType = 'arraybuffer';
    this.socket = socket;
    this.lastError = null;
    socket.onopen = () => this.greet();
    socket.onmessage = ({data}) => (typeof data === 'string' ? this.read(JSON.parse(data)) : this.emit('sample', data));
    socket.onclose = ({code, reason}) => socket === this.socket && this.closed(code, reason);
  }

  // A socket closes a moment before it says so, and takes nothing then.
  get isReady() { return this.phase === 'ready' && this.socket.readyState === WebSocket.OPEN; }
  get maySteer() { return this.isReady && this.role === 'steer'; }

  // The answer to a request, or a Refusal.
  call(method, params = {}) {
    if (!this.isReady && method !== 'hello') return Promise.reject(new Refusal({message: 'the run is away'}));
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, {resolve, reject});
      this.socket.send(JSON.stringify({jsonrpc: '2.0', id, method, params}));
    });
  }

  // A request that is not answered.
  send(method, params) {
    if (this.isReady) this.socket.send(JSON.stringify({jsonrpc: '2.0', method, params}));
  }

  async greet() {
    const {role, token} = this.link;
    let answer;
    try {
      answer = await this.call('hello', {protocol: PROTOCOL, role, name: 'page', token});
    } catch (refusal) {
      this.lastError = refusal;
      return; // the server closes, and its code says why
    }
    const first = this.welcome ?? answer;
    if (answer.version !== first.version || answer.protocol !== PROTOCOL) {
      this.giveUp(`This page is of version ${first.version} and the run is of version ${answer.version}. ` +
                  'Reload this page.');
      return;
    }
    if (answer.pid !== first.pid) {
      this.giveUp('Another run has taken this address. Reload this page.');
      return;
    }
    this.welcome = answer;
    this.role = answer.role;
    this.attempts = 0;
    this.tell('ready', '');
    this.emit('ready', answer);
  }

  read(message) {
    if (message.method) {
      if (message.method === 'state') this.isDraining = message.params.state === 'drains';
      this.emit(message.method, message.params);
      return;
    }
    const asked = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (!message.error) asked?.resolve(message.result);
    else if (asked) asked.reject(new Refusal(message.error));
    else this.lastError = new Refusal(message.error); // about the connection: it closes next
  }

  closed(code, reason) {
    for (const {reject} of this.waiting.values()) reject(new Refusal({message: 'the run is away'}));
    this.waiting.clear();
    if (this.phase === 'gone' || this.phase === 'over') return;
    const said = this.lastError;
    const wasHere = this.welcome !== null;
    if (said?.code === OLD_PAGE)
      this.tell('gone', 'The run is of another version than this page. Reload this page.', said);
    else if (code === NOT_ADMITTED)
      this.tell('gone', 'The run does not accept this link. Open the link that it has printed.', said, reason);
    else if (code === FULL)
      this.tell('gone', 'All places of the run are taken. Close another page of it, and try again.', said, reason);
    else if (code === OVER || (this.isDraining && wasHere))
      this.tell('over', 'The run has ended. A new run prints a new link.', said, reason);
    else if (said && !wasHere)
      this.tell('gone', 'The run does not understand this page. Reload this page.', said, reason);
    else this.comeBack(wasHere);
  }

  comeBack(wasHere) {
    const wait = WAITS_MS[Math.min(this.attempts, WAITS_MS.length - 1)];
    ++this.attempts;
    const words = this.attempts < PROBABLY_OVER
      ? `The connection ${wasHere ? 'is lost' : 'cannot be made'}. The page tries again by itself.`
      : 'The run cannot be reached; it has probably ended. The page goes on trying.';
    this.tell('away', words);
    // Many pages must not come back in the same moment.
    this.timer = setTimeout(() => this.open(), wait * (0.75 + Math.random() / 2));
  }

  giveUp(words) {
    this.tell('gone', words);
    this.socket.close();
  }

  tell(phase, words, refusal = null, reason = '') {
    this.phase = phase;
    this.emit('phase', {phase, words, refusal, reason});
  }

  emit(name, detail) { this.dispatchEvent(new CustomEvent(name, {detail})); }
}
