// Sends changes of parameters: at most one `set` of a parameter is under way, and of values that come meanwhile the
// newest one follows. A slider that is dragged may give hundreds a second, and each answer waits for a tick.

export class Changes {
  constructor(connection) {
    this.connection = connection;
    this.lanes = new Map(); // by "handler.param"
  }

  // `told.accepted(value, answer)` and `told.refused(value, refusal)` are called for each value that was sent.
  set(name, value, told) {
    const lane = this.lanes.get(name);
    if (lane) lane.next = {value, told};
    else this.send(name, value, told);
  }

  isUnderWay(name) { return this.lanes.has(name); }

  async send(name, value, told) {
    const lane = {next: null};
    this.lanes.set(name, lane);
    let done;
    try {
      const answer = await this.connection.call('set', {changes: {[name]: value}});
      done = () => told.accepted(value, answer);
    } catch (refusal) {
      done = () => told.refused(value, refusal);
    }
    this.lanes.delete(name);
    if (lane.next && this.connection.maySteer) this.send(name, lane.next.value, lane.next.told);
    done();
  }
}
