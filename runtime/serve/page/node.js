// One box of the graph: its name, a line for each kind of number, and its ports.
import {element, show} from './elements.js';
import {count} from './numbers.js';

export class NodeView {
  constructor(box, atX, atY, onNode, onPort) {
    this.box = box;
    const streams = box.handlers.length;
    const left = atX(box.x), top = atY(box.y);
    const name = element('span', {className: 'node-name'}, box.name);
    const head = element('button', {type: 'button', className: 'node-head', title: `${box.name} (${box.type})`,
                                    onclick: () => onNode(box)},
                         name, element('span', {className: 'node-type'}, box.type));
    if (streams > 1)
      name.after(element('span', {className: 'node-count', title: `stands for ${streams} streams`}, `×${streams}`));
    this.rate = number('rate');
    this.device = number('device');
    this.p50 = number('p50');
    this.p99 = number('p99');
    this.queue = number('queue');
    this.drops = number('drops');
    this.errors = number('errors');
    this.busy = element('div', {className: 'busy-bar'});
    const numbers = element('div', {className: 'numbers'},
      element('div', {className: 'line'}, this.rate, this.device),
      element('div', {className: 'line'}, labelled('p50', this.p50), labelled('p99', this.p99)),
      element('div', {className: 'line'}, labelled('queue', this.queue), labelled('drops', this.drops),
              labelled('errors', this.errors)),
      element('div', {className: 'busy', title: 'share of one thread: rate × p50'}, this.busy));
    this.ports = new Map(); // buttons, by "outputs.video"
    this.root = element('article', {className: `node${box.inserted ? ' inserted' : ''}`, 'data-name': box.name,
                                    'aria-label': `${box.name}, ${box.type}`},
                        head, numbers);
    for (const side of ['inputs', 'outputs'])
      for (const port of box[side]) this.root.append(this.portButton(port, side, atY(box.y + port.y) - top, onPort));
    Object.assign(this.root.style, {left: `${left}px`, top: `${top}px`, width: `${atX(box.x + box.width) - left}px`,
                                    height: `${atY(box.y + box.height) - top}px`});
    if (box.inputs.length && box.outputs.length) this.root.classList.add('two-sided');
  }

  portButton(port, side, down, onPort) {
    const words = side === 'outputs' ? 'preview of this output' : 'preview of what comes here';
    const button = element('button', {type: 'button', className: `port ${side}`, title: `${port.name}: ${words}`,
                                      'data-port': port.name, 'aria-pressed': 'false',
                                      onclick: () => onPort(this.box, port.name, side)},
                           element('span', {className: 'port-name'}, port.name));
    button.style.top = `${down - 1}px`; // from inside the node's border
    this.ports.set(`${side}.${port.name}`, button);
    return button;
  }

  // `share` of one thread, 0 to 1.
  showBusy(share) {
    const scale = `scaleX(${Math.min(1, share).toFixed(2)})`;
    if (this.busyScale !== scale) this.busy.style.transform = this.busyScale = scale;
  }

  markSlowest(is) {
    if (this.isSlowest === is) return;
    this.isSlowest = is;
    this.root.classList.toggle('slowest', is);
    this.slowestMark ??= element('span', {className: 'slowest-mark', title: 'the longest p50 of all'}, 'slowest');
    if (is) this.root.append(this.slowestMark);
    else this.slowestMark.remove();
  }

  // `isBad`: any of it deserves a look.
  showCount(target, number, isBad) {
    show(target, count(number));
    target.classList.toggle('some', isBad && number > 0);
  }
}

function number(name) { return element('span', {className: `value ${name}`}, '–'); }

function labelled(words, value) {
  return element('span', {className: 'labelled'}, element('span', {className: 'label'}, words), ' ', value);
}
