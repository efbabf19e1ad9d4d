// The panel of one handler: its summary, its outputs and its parameters.
import {element} from './elements.js';
import {ParameterRow} from './parameter_row.js';

const ALL = ''; // of all streams
const streamOf = (handler) => handler.slice(handler.indexOf('@') + 1);

export class NodePanel {
  // `onPreview(box, port)`: somebody wants to see an output. `onClose(box)`: the panel was closed.
  constructor(root, {connection, changes, values, onPreview, onClose}) {
    Object.assign(this, {root, connection, changes, values, onPreview, onClose, box: null, rows: new Map()});
    root.addEventListener('keydown', ({key}) => key === 'Escape' && this.close());
  }

  open(box, plan, types) {
    Object.assign(this, {box, plan, type: types[box.type]});
    this.name = ALL;
    this.root.hidden = false;
    this.draw();
  }

  close() {
    const {box} = this;
    this.box = null;
    this.root.hidden = true;
    this.root.replaceChildren();
    this.rows.clear();
    this.onClose(box);
  }

  draw() {
    const {box, type} = this;
    this.names = this.values.namesOf(box, this.plan);
    this.closeButton = element('button', {type: 'button', className: 'close', 'aria-label': 'close this panel',
                                          onclick: () => this.close()}, '×');
    this.note = element('p', {className: 'role-note'}, 'This link only watches: nothing can be changed here.');
    this.root.replaceChildren(
      element('header', {className: 'panel-head'}, element('h2', {}, box.name), this.closeButton),
      element('p', {className: 'panel-type'}, box.type),
      ...(type?.summary ? [element('p', {className: 'summary'}, type.summary)] : []),
      this.facts());
    if (box.handlers.length > 1 && this.names.length > 0) this.root.append(this.streamChoice());
    this.root.append(this.outputs(), this.note);
    this.parameters = element('div', {className: 'params'});
    this.root.append(this.parameters);
    this.drawParameters();
    this.closeButton.focus({preventScroll: true});
  }

  facts() {
    const list = element('dl', {className: 'facts'});
    const handlers = this.box.handlers.map((handler) => Object.values(this.plan.handlers)[handler]);
    const fact = (name, pick) => {
      const all = [...new Set(handlers.map(pick))].filter((value) => value !== '' && value !== undefined);
      if (all.length) list.append(element('dt', {}, name), element('dd', {}, all.join(', ')));
    };
    fact('device', ({domain, reason}) => (reason ? `${domain}: ${reason}` : domain));
    fact('clock', ({clock, every}) => (every > 1 ? `${clock || 'main'}, every ${every} ticks` : clock));
    fact('segment', ({segment}) => String(segment));
    if (handlers.length > 1) list.append(element('dt', {}, 'streams'), element('dd', {}, String(handlers.length)));
    return list;
  }

  streamChoice() {
    const onchange = () => {
      this.name = choice.value;
      this.drawParameters();
    };
    const choice = element('select', {id: 'panel-stream', onchange}, element('option', {value: ALL}, 'all streams'),
                           ...this.names.map((name) => element('option', {value: name}, streamOf(name))));
    choice.value = this.name;
    const label = element('label', {htmlFor: 'panel-stream'}, 'values of ');
    return element('p', {className: 'stream-choice'}, label, choice);
  }

  // Outputs that nobody reads are not in the graph; they can be seen from here.
  outputs() {
    const list = element('p', {className: 'outputs'});
    const connected = this.box.outputs.map(({name}) => name);
    const declared = (this.type?.outputs ?? []).map(({name}) => name);
    const isList = (name) => connected.some((one) => one.startsWith(`${name}[`));
    const names = [...connected, ...declared.filter((name) => !connected.includes(name) && !isList(name))];
    if (names.length) list.append(element('span', {className: 'label'}, names.length > 1 ? 'outputs ' : 'output '));
    for (const name of names)
      list.append(element('button', {type: 'button', className: 'output', title: 'open a preview', 'data-port': name,
                                     onclick: () => this.onPreview(this.box, name)}, name), ' ');
    return list;
  }

  // The name that is set: a handler's, or that of the template of all its streams.
  get target() {
    if (this.name !== ALL) return this.name;
    const first = Object.keys(this.plan.handlers)[this.box.handlers[0]];
    return this.plan.handlers[first].template ?? first;
  }

  drawParameters() {
    this.rows.clear();
    const rows = (this.type?.parameters ?? []).map((declared) => this.addRow(declared));
    const declared = new Set(this.rows.keys());
    // Values of `batch:` are no parameters of the type, and are told once they were changed.
    for (const [name, {live}] of Object.entries(this.said()))
      if (!declared.has(name)) rows.push(this.addRow({name, type: 'string', choices: [], unit: '', live, help: ''}));
    const live = rows.filter((row) => row.declared.live), fixed = rows.filter((row) => !row.declared.live);
    const parts = [];
    if (live.length) parts.push(element('h3', {}, 'Live'), ...live.map((row) => row.root));
    if (fixed.length)
      parts.push(element('h3', {}, 'Not live'),
                 element('p', {className: 'note'}, 'These cannot be changed while the run goes on.'),
                 ...fixed.map((row) => row.root));
    if (!rows.length) parts.push(element('p', {className: 'note'}, 'It has no parameters.'));
    this.parameters.replaceChildren(...parts);
    this.showValues();
    this.showRole();
  }

  addRow(declared) {
    const row = new ParameterRow(declared, (value) => {
      const name = `${this.target}.${declared.name}`;
      this.changes.set(name, value, {
        accepted: (sent, answer) => row.accepted(sent, answer, this.changes.isUnderWay(name)),
        refused: (sent, refusal) => row.refused(sent, refusal),
      });
    });
    this.rows.set(declared.name, row);
    return row;
  }

  // The values that are shown. Those of several streams are shown where all agree.
  said() {
    const names = this.name === ALL ? this.names : [this.name];
    const [first, ...others] = names.map((name) => this.values.of(name));
    const said = {};
    for (const [param, one] of Object.entries(first ?? {})) {
      const isCommon = (field) => others.every((other) => other[param]?.[field] === one[field]);
      said[param] = {...one};
      if (!isCommon('value')) {
        delete said[param].value;
        const valueOf = (name) => this.values.of(name)[param]?.value ?? '?';
        said[param].differs = names.map((name) => `${streamOf(name)} ${valueOf(name)}`).join(', ');
      }
      if (!isCommon('declared')) delete said[param].declared;
    }
    return said;
  }

  showValues() {
    if (!this.box) return;
    const said = this.said();
    for (const [name, row] of this.rows)
      if (said[name]) row.showSaid(said[name], this.changes.isUnderWay(`${this.target}.${name}`));
  }

  // `handlers`: those of which a value has changed. Streams may have come with them.
  valuesChanged(handlers) {
    if (!this.box) return;
    const names = this.values.namesOf(this.box, this.plan);
    if (String(names) !== String(this.names)) this.draw();
    else if (names.some((name) => name in handlers)) this.showValues();
  }

  showRole() {
    if (!this.box) return;
    this.note.hidden = !(this.connection.isReady && this.connection.role === 'watch');
    for (const row of this.rows.values()) row.setEnabled(this.connection.maySteer);
  }
}
