// One parameter of a handler: its control, its unit and range, its reset, and what the run answered.
import {element, show} from './elements.js';
import {refusalView} from './refusal.js';
import {Scale} from './scale.js';

export class ParameterRow {
  // `declared`: as `describe` gives the parameter. `onChange(value)` is called for what a person wants.
  constructor(declared, onChange) {
    this.declared = declared;
    this.onChange = onChange;
    this.isHeld = false; // somebody drags the slider
    this.fields = [];    // what may be disabled
    this.answer = element('p', {className: 'answer', role: 'status'});
    this.refusal = element('div', {className: 'refusal-place'});
    this.reset = element('button', {type: 'button', className: 'reset', onclick: () => this.resetValue()}, 'reset');
    const fixed = element('span', {className: 'fixed-mark', title: 'it cannot be changed while it runs'}, 'not live');
    const id = `param-${declared.name}`;
    const label = element('label', {htmlFor: id, className: 'param-name'}, declared.name);
    const range = element('span', {className: 'range'}, rangeWords(declared));
    this.control = this.makeControl(id);
    this.root = element('div', {className: `param${declared.live ? '' : ' fixed'}`, 'data-param': declared.name},
                        element('div', {className: 'param-head'}, label, range, declared.live ? this.reset : fixed),
                        this.control, this.answer, this.refusal);
    if (declared.help) label.after(element('span', {className: 'help'}, declared.help));
    this.setEnabled(false);
  }

  makeControl(id) {
    const {type, choices, min, max, unit} = this.declared;
    if (type === 'bool') return this.makeSwitch(id);
    if (choices.length) return this.makeChoice(id, choices);
    const control = element('div', {className: 'control'});
    const isNumber = type === 'int' || type === 'float';
    const hasRange = isNumber && Number.isFinite(min) && Number.isFinite(max) && max > min;
    if (hasRange && this.declared.live) control.append(this.makeSlider());
    // A field of text, not of numbers: what is wrong goes to the run, and its sentence says why.
    this.field = element('input', {id, type: 'text', className: isNumber ? 'field short' : 'field', spellcheck: false,
                                   autocomplete: 'off', inputMode: isNumber ? 'decimal' : 'text',
                                   onchange: () => this.change(readText(this.field.value, type))});
    this.fields.push(this.field);
    control.append(this.field);
    if (unit) control.append(element('span', {className: 'unit'}, unit));
    return control;
  }

  makeSlider() {
    this.scale = new Scale(this.declared);
    this.slider = element('input', {type: 'range', className: 'slider', min: 0, max: this.scale.places, step: 1,
                                    'aria-label': this.declared.name});
    this.slider.addEventListener('input', () => {
      const value = this.scale.valueAt(Number(this.slider.value));
      this.field.value = String(value);
      this.describeSlider(value);
      this.change(value);
    });
    for (const start of ['pointerdown', 'keydown']) this.slider.addEventListener(start, () => { this.isHeld = true; });
    for (const end of ['pointerup', 'pointercancel', 'keyup', 'blur'])
      this.slider.addEventListener(end, () => { this.isHeld = false; });
    this.fields.push(this.slider);
    return this.slider;
  }

  makeSwitch(id) {
    this.box = element('input', {id, type: 'checkbox', role: 'switch', onchange: () => this.change(this.box.checked)});
    this.fields.push(this.box);
    return element('div', {className: 'control'}, this.box);
  }

  makeChoice(id, choices) {
    this.choice = element('select', {id, onchange: () => this.change(this.choice.value)},
                          ...choices.map((choice) => element('option', {value: choice}, choice)));
    this.fields.push(this.choice);
    return element('div', {className: 'control'}, this.choice);
  }

  resetValue() {
    const {usual} = this;
    this.change(usual);
    this.showValue(usual);
  }

  change(value) {
    this.refusal.replaceChildren();
    this.field?.removeAttribute('aria-invalid');
    this.onChange(value);
  }

  // Shows the value in force. `said`: as `get` gives it; `isUnderWay`: a newer value of ours is on its way.
  showSaid(said, isUnderWay) {
    this.said = said;
    this.usual = said.declared ?? said.default;
    const isKnown = said.value !== undefined;
    if (!isUnderWay && !this.isHeld && !this.refusal.childElementCount) this.showValue(said.value);
    if (said.differs) show(this.answer, `differs: ${said.differs}`);
    else if (!isKnown) show(this.answer, 'the value is not known');
    else if (said.tick !== undefined) show(this.answer, changedWords(said));
    this.updateReset();
  }

  showValue(value) {
    if (this.box) this.box.checked = value === true;
    else if (this.choice) this.choice.value = value ?? '';
    else if (document.activeElement !== this.field || this.field.value === String(this.shown ?? ''))
      this.field.value = value === undefined ? '' : String(value);
    this.shown = value;
    if (!this.slider || value === undefined) return;
    this.slider.value = String(this.scale.placeOf(value));
    this.describeSlider(value);
  }

  describeSlider(value) { this.slider.setAttribute('aria-valuetext', `${value} ${this.declared.unit}`.trim()); }

  // `answer`: of `set`. The value is in force from these ticks on.
  accepted(value, answer, isUnderWay) {
    const ticks = Object.entries(answer.ticks ?? {});
    const words = ticks.map(([clock, tick]) => `from tick ${tick}${ticks.length > 1 ? ` of ${clock}` : ''} on`);
    for (const clock of answer.ended ?? []) words.push(`${clock} has ended`);
    for (const node of answer.away ?? []) words.push(`${node} is away and takes it once it is back`);
    if (ticks.length) {
      this.said = {...this.said, value, tick: ticks[0][1], by: 'page'};
      this.root.dataset.tick = ticks[0][1];
      if (!isUnderWay && !this.isHeld) this.showValue(value);
    }
    show(this.answer, words.join(', '));
    this.updateReset();
  }

  refused(value, refusal) {
    const edit = refusal.edit.slice(refusal.edit.indexOf('=') + 1); // of "marker.radius=4096"
    const onEdit = () => {
      this.change(readText(edit, this.declared.type));
      this.showValue(readText(edit, this.declared.type));
    };
    this.refusal.replaceChildren(refusalView(refusal, refusal.edit ? onEdit : null));
    this.field?.setAttribute('aria-invalid', 'true');
    if (!this.field) this.showValue(this.said?.value);
  }

  setEnabled(maySteer) {
    this.maySteer = maySteer;
    for (const field of this.fields) field.disabled = !maySteer || !this.declared.live;
    this.updateReset();
  }

  updateReset() {
    const isExact = typeof this.usual !== 'number' || !Number.isInteger(this.usual) || Number.isSafeInteger(this.usual);
    this.reset.disabled = !this.maySteer || this.usual === undefined || this.said?.value === this.usual || !isExact;
    const source = this.said?.declared === undefined ? 'its default' : 'as the pipeline declares it';
    this.reset.title = this.usual === undefined ? '' : `back to ${this.usual}, ${source}`;
  }
}

// A number where it is one that JavaScript has exactly. Other text goes to the run as it is, which reads it itself.
function readText(text, type) {
  if (type === 'bool') return text === 'true';
  const isNumber = type === 'int' || type === 'float';
  const number = Number(text);
  const isExact = Number.isFinite(number) && (type !== 'int' || Number.isSafeInteger(number));
  return isNumber && text.trim() !== '' && isExact ? number : text;
}

function rangeWords({type, min, max, unit}) {
  const with_ = unit ? ` ${unit}` : '';
  const isThere = {min: Number.isFinite(min), max: Number.isFinite(max)};
  if (type === 'bool' || type === 'string') return unit;
  if (isThere.min && isThere.max) return `${min} to ${max}${with_}`;
  if (isThere.min) return `from ${min}${with_}`;
  return isThere.max ? `to ${max}${with_}` : unit;
}

function changedWords({tick, by, declared, default: usual}) {
  const was = declared === undefined ? `default ${usual}` : `declared ${declared}`;
  return `changed at tick ${tick} by ${by}, ${was}`;
}
