// The parameters of the run with their values in force, by the handlers' names.

export class Values {
  constructor() { this.byHandler = {}; }

  forget() { this.byHandler = {}; }

  // `handlers`: as `get` and the event `params` give them.
  take(handlers) { Object.assign(this.byHandler, handlers); }

  // The names under which the handlers of a box are asked: those of its streams, also of ones that came later.
  namesOf(box, plan) {
    const all = Object.keys(plan.handlers);
    const own = box.handlers.map((handler) => all[handler]);
    const template = plan.handlers[own[0]].template;
    if (!template) return own;
    const known = new Set(all);
    const later = Object.keys(this.byHandler).filter((name) => name.startsWith(`${template}@`) && !known.has(name));
    const isThere = (name) => name in this.byHandler;
    const there = [...own.filter(isThere), ...later];
    return there.length ? there : own; // the run says why it cannot show them
  }

  of(handler) { return this.byHandler[handler]?.parameters ?? {}; }
}
