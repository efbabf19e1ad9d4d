// The wishes that the viewer has not answered yet. A control moves at once, and comes back if its wish is refused.
//
//   wish ──shown, waits for the refresh──▶ sent ──ack──────▶ it counts
//                                            └───refused──▶ the value that counts is shown again
//
// Only the newest wish of a control matters. While there is one, no value from elsewhere moves the control: that value is
// older than the wish, which the viewer has yet to answer.

// A control's key names a record and its field: "look.gamma". Axes are numbers for the viewer: places in the choices.
function messageOf(control, value, seq) {
  const [type, field] = control.key.split('.');
  if (type === 'look') return {type, seq, [field]: value};
  if (field === 'axis') return {type, seq, axis: control.choices.indexOf(value)};
  const [name, axis] = field.split('_');
  return {type, seq, [name]: Math.round(value), ...(axis && {axis: Number(axis)})};
}

export class Ledger {
  // `say(message)` sends one, `show(key, value)` moves a control.
  constructor(say, show) {
    this.say = say;
    this.show = show;
    this.begin();
  }

  // A new connection counts from 1 and owes no answer.
  begin() {
    this.seq = 0;
    this.waiting = new Map(); // control and value that go at the next refresh, by key
    this.sent = new Map();    // the number of the newest wish that is not answered, by key
  }

  wish(control, value) {
    if (this.waiting.size === 0) requestAnimationFrame(() => this.send());
    this.waiting.set(control.key, {control, value});
  }

  send() {
    for (const [key, {control, value}] of this.waiting) {
      this.sent.set(key, ++this.seq);
      this.say(messageOf(control, value, this.seq));
    }
    this.waiting.clear();
  }

  resetLook(keys) {
    this.send();
    ++this.seq;
    for (const key of keys) if (key.startsWith('look.')) this.sent.set(key, this.seq);
    this.say({type: 'look', seq: this.seq, reset: true});
  }

  // No control shows the camera; the answer says whether it counts.
  resetCamera() {
    this.send();
    this.say({type: 'camera', seq: ++this.seq, op: 'reset'});
  }

  // Answers come in order: all wishes up to this one are settled.
  answered(seq, values) {
    for (const [key, wished] of this.sent) if (wished <= seq) this.sent.delete(key);
    this.told(values);
  }

  told(values) {
    for (const [key, value] of Object.entries(values))
      if (!this.waiting.has(key) && !this.sent.has(key)) this.show(key, value);
  }
}
