// The panel with the controls that the pipeline offers.
import {Ledger} from './ledger.js';
import {WIDGETS} from './widgets.js';

export class Panel {
  // `panel` and `button`, which opens it, are elements; `say(message)` sends one.
  constructor(panel, button, say) {
    const within = (selector) => panel.querySelector(selector);
    this.panel = panel;
    this.button = button;
    this.fields = within('fieldset');
    this.list = within('#controls');
    this.answer = within('#answer');
    this.shown = new Map(); // {control, widget} by key
    this.ledger = new Ledger(say, (key, value) => this.shown.get(key)?.widget.show(value));
    button.onclick = () => {
      panel.hidden = !panel.hidden;
      button.setAttribute('aria-expanded', String(!panel.hidden));
    };
    within('#reset-look').onclick = () => this.ledger.resetLook(this.shown.keys());
    within('#reset-camera').onclick = () => this.ledger.resetCamera();
  }

  // The viewer tells each new connection the controls.
  begin(maySteer) {
    this.ledger.begin();
    this.fields.disabled = !maySteer;
    this.answer.textContent = '';
  }

  // A control that was there before keeps its elements, and with them the focus.
  offer(controls) {
    const before = this.shown;
    this.shown = new Map(controls.map((control) => {
      const one = before.get(control.key) ?? this.widgetOf(control);
      one.control = control;
      one.widget.describe(control);
      return [control.key, one];
    }));
    const elements = [...this.shown.values()].map(({widget}) => widget.element);
    const areThere = elements.length === this.list.children.length && elements.every((one, i) => one === this.list.children[i]);
    if (!areThere) this.list.replaceChildren(...elements);
    this.ledger.told(Object.fromEntries(controls.map(({key, value}) => [key, value])));
    this.button.hidden = controls.length === 0;
    if (this.button.hidden) this.panel.hidden = true;
    this.button.setAttribute('aria-expanded', String(!this.panel.hidden));
  }

  widgetOf(control) {
    const one = {control};
    one.widget = new WIDGETS[control.kind]((value) => this.ledger.wish(one.control, value));
    return one;
  }

  told({values}) { this.ledger.told(values); }

  answered({seq, values, message}) {
    if (!seq) return;
    this.ledger.answered(seq, values);
    this.answer.textContent = message ?? '';
  }
}
