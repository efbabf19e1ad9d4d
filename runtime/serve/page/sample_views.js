// Draws a value of an output: a picture, the statistics of a tensor, records as a table, the facts of a packet.
import {element, show} from './elements.js';
import {bytes} from './numbers.js';

const HEAT_SCALE = 4; // pixels of the page for a number of the heat map, at least

class PictureView {
  constructor() {
    this.root = element('canvas', {className: 'picture', role: 'img', 'aria-label': 'picture of this output'});
    this.context = this.root.getContext('2d', {alpha: false});
  }
  draw({picture}) {
    if (this.root.width !== picture.width || this.root.height !== picture.height)
      Object.assign(this.root, {width: picture.width, height: picture.height});
    this.context.putImageData(picture, 0, 0);
  }
  words({width, height}) { return `${width}×${height}`; }
}

class TensorView {
  constructor() {
    this.facts = new Facts();
    this.heat = element('canvas', {className: 'heat', role: 'img', 'aria-label': 'heat map of the last two axes'});
    this.context = this.heat.getContext('2d', {alpha: false});
    this.root = element('div', {className: 'tensor'}, this.facts.root, this.heat);
  }
  draw({value: {min, max, mean, not_finite: notFinite, count, looked_at: lookedAt = count, heat}}) {
    const of = lookedAt < count ? `${count}, of which ${lookedAt} were looked at` : count;
    this.facts.show({elements: of, min: written(min), mean: written(mean), max: written(max), 'not finite': notFinite});
    this.heat.hidden = !heat?.values.length;
    if (this.heat.hidden) return;
    const image = new ImageData(heat.width, heat.height);
    heat.values.forEach((level, n) => image.data.set([...HEAT[level], 255], 4 * n));
    if (this.heat.width !== heat.width || this.heat.height !== heat.height) {
      Object.assign(this.heat, {width: heat.width, height: heat.height});
      this.heat.style.minWidth = `${HEAT_SCALE * heat.width}px`;
    }
    this.context.putImageData(image, 0, 0);
  }
  words({value: {dtype, shape}}) { return `${dtype} ${shape.join('×')}`; }
}

class RecordsView {
  constructor() {
    this.head = element('tr');
    this.body = element('tbody');
    this.root = element('div', {className: 'records', tabIndex: 0, role: 'group', 'aria-label': 'records'},
                        element('table', {}, element('thead', {}, this.head), this.body));
  }
  draw({value: {fields, rows}}) {
    if (this.head.childElementCount !== fields.length)
      this.head.replaceChildren(...fields.map((field) => element('th', {scope: 'col'}, field)));
    // Cells stay and get other text, which is cheaper than other cells.
    while (this.body.rows.length > rows.length) this.body.deleteRow(-1);
    rows.forEach((row, n) => {
      const line = this.body.rows[n] ?? this.body.insertRow();
      while (line.cells.length > row.length) line.deleteCell(-1);
      row.forEach((value, c) => show(line.cells[c] ?? line.insertCell(), written(value)));
    });
  }
  words({value: {type, count, shown}}) {
    return shown < count ? `${shown} of ${count} × ${type}` : `${count} × ${type}`;
  }
}

class PacketView {
  constructor() {
    this.facts = new Facts();
    this.root = this.facts.root;
  }
  draw({value}) {
    const seconds = (ns) => (Number.isFinite(ns) ? `${(ns / 1e9).toFixed(3)} s` : undefined);
    this.facts.show({size: bytes(value.bytes), 'key frame': value.key ? 'yes' : 'no', time: seconds(value.pts_ns),
                     'decoded at': seconds(value.dts_ns), duration: seconds(value.duration_ns)});
  }
  words({value}) { return `packet of ${bytes(value.bytes)}`; }
}

// A list of names and values that changes in place.
class Facts {
  constructor() {
    this.root = element('dl', {className: 'facts'});
    this.values = new Map();
  }
  show(facts) {
    for (const [name, value] of Object.entries(facts)) {
      if (!this.values.has(name)) {
        this.values.set(name, element('dd'));
        this.root.append(element('dt', {}, name), this.values.get(name));
      }
      show(this.values.get(name), String(value ?? '–'));
    }
  }
}

// Numbers get their digits; lists and objects are written as JSON.
function written(value) {
  if (value === null || value === undefined) return '–';
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(5)));
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

// Dark blue, green, yellow: brightness rises all the way, so that it can be read without colours as well.
const HEAT = Array.from({length: 256}, (_, level) => {
  const stops = [[24, 16, 60], [52, 64, 140], [34, 128, 134], [96, 186, 96], [250, 230, 80]];
  const at = level / 255 * (stops.length - 1), n = Math.min(Math.floor(at), stops.length - 2);
  return stops[n].map((from, c) => Math.round(from + (stops[n + 1][c] - from) * (at - n)));
});

const VIEWS = {picture: PictureView, tensor: TensorView, records: RecordsView, packet: PacketView};

export function makeView(kind) { return new VIEWS[kind](); }
