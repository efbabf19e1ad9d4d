// What a person does with pointer, wheel, fingers and keys, as messages for the viewer.
//
// Moves are sent once a refresh at most; all else is sent at once, after the move that came before it. Besides, two
// fingers zoom and pan the camera, Control with the wheel zooms it, the right button pans it, and Alt with the left
// button turns it. Where `turns` is set, the left button and one finger turn it, and the wheel zooms it.

const LEFT = 1, RIGHT = 2;
const ZOOM_OF_WHEEL = 1.0015, DEGREES_OF_PIXEL = 0.2;
const KEY_BYTES_MAX = 15;
const PIXELS_MAX = 65536, FACTOR_MAX = 1e6; // of the viewer; more is no message

const clamped = (value, most) => Math.min(Math.max(value, -most), most);

const modifiersOf = (e) => (e.shiftKey ? 1 : 0) | (e.ctrlKey ? 2 : 0) | (e.altKey ? 4 : 0) | (e.metaKey ? 8 : 0);

export class Input {
  // `say(message)` sends one. `stage` has the focus, `canvas` the picture.
  constructor(stage, canvas, say) {
    this.canvas = canvas;
    this.say = say;
    this.seq = 0;
    this.last = null;         // the newest place, in pixels of the picture
    this.move = null;         // a move that waits for the next refresh
    this.pressed = new Map(); // keys that are down: the name that was sent, by their place on the keyboard
    this.buttons = 0;
    this.turns = false;
    this.fingers = new Map(); // touches that are down, by pointer
    const on = (name, heed, options) => stage.addEventListener(name, heed, options);
    on('pointermove', (e) => this.moved(e));
    on('pointerdown', (e) => this.pointer('down', e));
    on('pointerup', (e) => this.pointer('up', e));
    on('pointercancel', (e) => this.pointer('up', e));
    on('pointerleave', (e) => this.left(e));
    on('wheel', (e) => this.wheel(e), {passive: false});
    on('keydown', (e) => this.key('key_down', e));
    on('keyup', (e) => this.key('key_up', e));
    on('contextmenu', (e) => e.preventDefault());
    on('blur', () => this.releaseAll());
    window.addEventListener('blur', () => this.releaseAll());
    document.addEventListener('visibilitychange', () => document.hidden && this.releaseAll());
  }

  // A new connection counts from 1.
  begin() {
    this.seq = 0;
    this.move = null;
  }

  place(e) {
    const box = this.canvas.getBoundingClientRect();
    return {
      x: clamped((e.clientX - box.left) * this.canvas.width / Math.max(box.width, 1), PIXELS_MAX),
      y: clamped((e.clientY - box.top) * this.canvas.height / Math.max(box.height, 1), PIXELS_MAX),
    };
  }

  send(kind, fields) {
    this.say({type: 'event', kind, seq: ++this.seq, sent_s: performance.now() / 1000, ...fields});
  }

  pointerFields(e) {
    const at = this.place(e);
    const from = this.last ?? at;
    this.last = at;
    return {...at, dx: clamped(at.x - from.x, PIXELS_MAX), dy: clamped(at.y - from.y, PIXELS_MAX), buttons: e.buttons,
            modifiers: modifiersOf(e)};
  }

  // Browsers tell of a further button by a move.
  moved(e) {
    if (e.buttons !== this.buttons && e.pointerType === 'mouse') {
      this.pointer(e.buttons & ~this.buttons ? 'down' : 'up', e);
      return;
    }
    const before = this.fingers.get(e.pointerId) ?? this.last; // another finger may have been elsewhere meanwhile
    const fields = this.pointerFields(e);
    if (this.pinched(e)) return;
    if (this.fingers.has(e.pointerId)) this.fingers.set(e.pointerId, this.last);
    this.turned(e, before);
    if (!this.move) {
      this.move = fields;
      requestAnimationFrame(() => this.sendMove());
    } else {
      this.move = {...fields, dx: clamped(fields.dx + this.move.dx, PIXELS_MAX), dy: clamped(fields.dy + this.move.dy, PIXELS_MAX)};
    }
  }

  sendMove() {
    const move = this.move;
    this.move = null;
    if (move) this.send('move', move);
  }

  pointer(kind, e) {
    this.sendMove();
    if (kind === 'down') {
      this.canvas.parentElement.focus();
      this.canvas.parentElement.setPointerCapture?.(e.pointerId);
    }
    if (e.pointerType === 'touch') {
      if (kind === 'down') this.fingers.set(e.pointerId, this.place(e));
      else this.fingers.delete(e.pointerId);
    }
    this.buttons = e.buttons;
    this.send(kind, this.pointerFields(e));
  }

  left(e) {
    this.sendMove();
    this.fingers.delete(e.pointerId);
    this.send('leave', this.pointerFields(e));
    this.last = null;
  }

  // Two fingers zoom about the point between them.
  pinched(e) {
    if (e.pointerType !== 'touch' || this.fingers.size !== 2 || !this.fingers.has(e.pointerId)) return false;
    const span = () => {
      const [a, b] = [...this.fingers.values()];
      return {length: Math.hypot(a.x - b.x, a.y - b.y), x: (a.x + b.x) / 2, y: (a.y + b.y) / 2};
    };
    const before = span();
    this.fingers.set(e.pointerId, this.place(e));
    const now = span();
    if (before.length > 0 && now.length > 0) this.zoom(now.length / before.length, now);
    this.say({type: 'camera', op: 'pan', dx: now.x - before.x, dy: now.y - before.y});
    return true;
  }

  turned(e, before) {
    if (!before) return;
    const dx = this.last.x - before.x, dy = this.last.y - before.y;
    if (e.buttons & RIGHT) this.say({type: 'camera', op: 'pan', dx, dy});
    else if ((e.buttons & LEFT) && (e.altKey || (this.turns && modifiersOf(e) === 0)))
      this.say({type: 'camera', op: 'orbit', dx: dx * DEGREES_OF_PIXEL, dy: dy * DEGREES_OF_PIXEL});
  }

  zoom(by, at) {
    const factor = Math.min(Math.max(by, 1 / FACTOR_MAX), FACTOR_MAX);
    this.say({type: 'camera', op: 'zoom', factor, x: at.x - this.canvas.width / 2, y: at.y - this.canvas.height / 2});
  }

  wheel(e) {
    e.preventDefault();
    this.sendMove();
    const at = this.place(e);
    if (e.ctrlKey || this.turns) this.zoom(ZOOM_OF_WHEEL ** -e.deltaY, at); // browsers say a pinch on a touchpad so, too
    this.send('wheel', {...at, dx: clamped(e.deltaX, PIXELS_MAX), dy: clamped(e.deltaY, PIXELS_MAX), buttons: e.buttons, modifiers: modifiersOf(e)});
  }

  key(kind, e) {
    if (e.key === 'Tab' || new TextEncoder().encode(e.key).length > KEY_BYTES_MAX) return; // Tab leaves the picture
    if (!e.ctrlKey && !e.metaKey) e.preventDefault(); // the browser keeps its own shortcuts
    if (e.repeat) return;
    // Shift changes the name between down and up: the key goes up by the name that went down.
    const key = kind === 'key_up' ? this.pressed.get(e.code) ?? e.key : e.key;
    if (kind === 'key_down') this.pressed.set(e.code, key);
    else this.pressed.delete(e.code);
    this.sendMove();
    this.send(kind, {key, modifiers: modifiersOf(e)});
  }

  // Nobody tells a page that has lost the focus when a key goes up.
  releaseAll() {
    this.sendMove();
    for (const key of this.pressed.values()) this.send('key_up', {key});
    this.pressed.clear();
    this.fingers.clear();
    if (this.buttons && this.last) this.send('up', {...this.last, buttons: 0});
    this.buttons = 0;
  }
}
