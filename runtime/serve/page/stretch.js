// Makes room in a layout: maps places of one axis so that stretches of it get at least a certain length.
//
// The map only rises, so that what lies left of something stays left of it, and an arrow still meets its port.

// `demands` are [from, to, length]. Where no demand lies, lengths are multiplied by `between`.
export function stretch(demands, between) {
  const cuts = [...new Set(demands.flatMap(([from, to]) => [from, to]))].sort((a, b) => a - b);
  const factors = cuts.slice(1).map((end, n) => {
    const over = demands.filter(([from, to]) => from <= cuts[n] && end <= to && to > from);
    return over.length ? Math.max(1, ...over.map(([from, to, length]) => length / (to - from))) : between;
  });
  const starts = [cuts[0] ?? 0];
  factors.forEach((factor, n) => starts.push(starts[n] + (cuts[n + 1] - cuts[n]) * factor));
  return (place) => {
    const after = cuts.findIndex((cut) => cut > place);
    if (after === 0 || !cuts.length) return place;
    if (after === -1) return starts.at(-1) + place - cuts.at(-1);
    return starts[after - 1] + (place - cuts[after - 1]) * factors[after - 1];
  };
}
