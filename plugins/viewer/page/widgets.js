// A control as native elements: a choice, a number, or a range with its histogram. Each has `element`; `describe(control)`
// and `show(value)`, which tell nobody; and it calls `wish(value)` when the person moves it.

const made = (name, fields = {}, children = []) => {
  const element = Object.assign(document.createElement(name), fields);
  element.append(...children);
  return element;
};

// Places are whole, and told as they are.
const shortOf = (value, step = 0) => String(step >= 1 ? value : Number(value.toPrecision(3)));

// A step that divides nothing lets a slider stand at any number.
const fit = (slider, {low, high, step}) => Object.assign(slider, {min: low, max: high, step: step || 'any'});

class Choice {
  constructor(wish) {
    this.select = made('select', {onchange: () => wish(this.select.value)});
    this.label = made('span');
    this.element = made('label', {className: 'control'}, [this.label, this.select]);
  }
  describe({label, choices}) {
    this.label.textContent = label;
    const has = [...this.select.options].map((option) => option.value);
    if (has.join('\n') === choices.join('\n')) return;
    this.select.replaceChildren(...choices.map((value) => made('option', {value, textContent: value})));
  }
  show(value) { this.select.value = value; }
}

class Slider {
  constructor(wish) {
    this.slider = made('input', {type: 'range', oninput: () => {
      this.number.textContent = shortOf(this.slider.valueAsNumber, this.step);
      wish(this.slider.valueAsNumber);
    }});
    this.label = made('span');
    this.number = made('output');
    this.element = made('label', {className: 'control'}, [this.label, this.number, this.slider]);
  }
  describe(control) {
    this.label.textContent = control.label;
    this.step = control.step;
    fit(this.slider, control);
  }
  show(value) {
    this.slider.value = value;
    this.number.textContent = shortOf(value, this.step);
  }
}

const HISTOGRAM_PIXELS = 48;

class Range {
  constructor(wish) {
    const thumb = (moved) => made('input', {type: 'range', oninput: () => {
      moved();
      this.drawn();
      wish(this.value);
    }});
    this.low = thumb(() => { this.low.value = Math.min(this.low.valueAsNumber, this.high.valueAsNumber); });
    this.high = thumb(() => { this.high.value = Math.max(this.low.valueAsNumber, this.high.valueAsNumber); });
    this.canvas = made('canvas', {height: HISTOGRAM_PIXELS});
    this.label = made('span');
    this.numbers = made('output');
    this.thumbs = made('div', {className: 'range'}, [this.canvas, this.low, this.high]);
    this.element = made('div', {className: 'control'}, [this.label, this.numbers, this.thumbs]);
    this.element.setAttribute('role', 'group');
  }
  get value() { return [this.low.valueAsNumber, this.high.valueAsNumber]; }

  describe(control) {
    this.label.textContent = control.label;
    this.element.setAttribute('aria-label', control.label);
    this.low.setAttribute('aria-label', `${control.label}, low`);
    this.high.setAttribute('aria-label', `${control.label}, high`);
    for (const thumb of [this.low, this.high]) fit(thumb, control);
    this.counts = control.histogram ?? [];
    this.canvas.hidden = this.counts.length === 0;
    this.canvas.width = Math.max(this.counts.length, 1);
    this.drawn();
  }
  show([low, high]) {
    this.low.value = low;
    this.high.value = high;
    this.drawn();
  }

  // The thumb that has more room to move lies on top, so that neither is stuck where they meet.
  drawn() {
    const [low, high] = this.value, {min, max} = this.low;
    this.numbers.textContent = `${shortOf(low)} … ${shortOf(high)}`;
    this.low.classList.toggle('on-top', low - min > max - high);
    this.drawHistogram(low, high);
  }

  // Bars as high as the logarithms of their counts; those outside of the range are faint.
  drawHistogram(low, high) {
    const context = this.canvas.getContext('2d'), {width, height} = this.canvas;
    const {min, max} = this.low, most = Math.log1p(Math.max(...this.counts, 1));
    context.clearRect(0, 0, width, height);
    context.fillStyle = getComputedStyle(this.canvas).color;
    this.counts.forEach((count, part) => {
      const middle = Number(min) + (max - min) * (part + 0.5) / this.counts.length;
      const bar = Math.ceil(height * Math.log1p(count) / most);
      context.globalAlpha = middle >= low && middle <= high ? 1 : 0.3;
      context.fillRect(part, height - bar, 1, bar);
    });
  }
}

export const WIDGETS = {choice: Choice, number: Slider, range: Range};
