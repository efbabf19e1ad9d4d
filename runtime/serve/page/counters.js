// Puts the run's counters onto the nodes: rates, times, queues, drops and errors, and the slowest node's mark.
import {show} from './elements.js';
import {duration, rate} from './numbers.js';

export class Counters {
  constructor() { this.nodes = []; }

  // `columns`: as `subscribe` answers. The same graph may be told anew after the connection has come back.
  begin(plan, columns, nodes) {
    this.at = Object.fromEntries(Object.entries(columns).map(
      ([table, names]) => [table, Object.fromEntries(names.map((name, n) => [name, n]))]));
    this.nodes = nodes;
    const handlers = Object.values(plan.handlers);
    const edgesTo = incomingEdges(plan);
    this.parts = nodes.map((node) => ({
      node,
      handlers: node.box.handlers,
      edges: node.box.handlers.flatMap((handler) => edgesTo.get(handler) ?? []),
      device: [...new Set(node.box.handlers.map((handler) => handlers[handler].domain))].join(', '),
    }));
    for (const {node, device} of this.parts) show(node.device, device);
  }

  // `event`: the params of a `counters` event.
  draw(event) {
    if (!this.parts) return;
    const times = timesOfHandlers(event, this.at);
    let slowest = null, longest = 0;
    for (const part of this.parts) {
      const p50 = this.drawNode(part, event, times);
      if (p50 > longest) [slowest, longest] = [part.node, p50];
    }
    for (const {node} of this.parts) node.markSlowest(node === slowest);
  }

  // Several streams in a node: their rates are added, and the longest of their times is shown.
  drawNode({node, handlers, edges}, event, times) {
    let perSecond = 0, p50 = 0, p99 = 0, errors = 0, busy = 0;
    for (const handler of handlers) {
      const one = times[handler];
      if (!one) continue;
      perSecond += one.perSecond;
      p50 = Math.max(p50, one.p50);
      p99 = Math.max(p99, one.p99);
      errors += one.errors;
      busy = Math.max(busy, one.perSecond * one.p50 / 1e6);
    }
    let queue = 0, drops = 0;
    const causes = {};
    for (const edge of edges) {
      const row = event.edges[edge];
      if (!row) continue;
      queue += row[this.at.edges.waiting];
      for (const [cause, dropped] of Object.entries(row[this.at.edges.dropped])) {
        drops += dropped;
        causes[cause] = (causes[cause] ?? 0) + dropped;
      }
    }
    show(node.rate, rate(perSecond));
    show(node.p50, perSecond > 0 ? duration(p50) : '–');
    show(node.p99, perSecond > 0 ? duration(p99) : '–');
    node.showCount(node.queue, queue, false);
    node.showCount(node.drops, drops, true);
    node.showCount(node.errors, errors, true);
    const why = Object.entries(causes).map(([cause, dropped]) => `${cause}: ${dropped}`).join('\n');
    if (node.drops.title !== why) node.drops.title = why;
    node.showBusy(busy);
    return perSecond > 0 ? p50 : 0;
  }
}

// The numbers of edges into each handler.
function incomingEdges(plan) {
  const numbers = new Map(Object.keys(plan.handlers).map((name, n) => [name, n]));
  const found = new Map();
  plan.edges.forEach(({to}, edge) => {
    const handler = numbers.get(to.slice(0, to.lastIndexOf('.'))); // no port has a dot
    if (handler === undefined) return;
    if (!found.has(handler)) found.set(handler, []);
    found.get(handler).push(edge);
  });
  return found;
}

// Handlers that a device runs as a captured region have no times of their own: they show those of the region.
function timesOfHandlers(event, {handlers, regions}) {
  const times = event.handlers.map((row) => ({perSecond: row[handlers.per_s], p50: row[handlers.p50_us],
                                              p99: row[handlers.p99_us], errors: row[handlers.errors]}));
  for (const row of event.regions)
    for (const handler of row[regions.handlers])
      if (times[handler] && times[handler].perSecond === 0)
        Object.assign(times[handler], {perSecond: row[regions.per_s], p50: row[regions.p50_us],
                                       p99: row[regions.p99_us]});
  return times;
}
