// Puts the page together: what the run tells goes to the parts that show it, and what a person does goes to the run.
import {Changes} from './changes.js';
import {Connection} from './connection.js';
import {Counters} from './counters.js';
import {Graph} from './graph.js';
import {Header} from './header.js';
import {readLink} from './link.js';
import {Log} from './log.js';
import {NodePanel} from './node_panel.js';
import {Notice} from './notice.js';
import {Previews} from './previews.js';
import {Values} from './values.js';

const EVENTS_HZ = 5;
const NOT_YET = 'MR0316'; // there is no plan as long as the nodes of a pipeline have not met
const ASK_AGAIN_MS = 1000;
const AGES_MS = 500; // a preview that stands still says so, also while the run is away
const NOT_SHOWN = 'MR0319'; // outputs on GPUs and in recorded regions
const TOPICS = ['counters', 'state', 'params', 'log'];

const part = (id) => document.getElementById(id);
const address = `${location.origin.replace(/^http/, 'ws')}/control`;
const connection = new Connection(address, readLink(location.hash));
const header = new Header(connection);
const notice = new Notice(part('notice'), () => connection.open());
const values = new Values();
const counters = new Counters();
const log = new Log(part('log'), part('log-lines'), part('log-count'), part('log-last'));
const graph = new Graph(part('graph'), part('zoom'), {onNode: openPanel, onPort: openPort});
const previews = new Previews(part('previews'), connection, showPreviewState);
const panel = new NodePanel(part('panel'), {connection, values, changes: new Changes(connection),
                                            onPreview: openPreview, onClose: (box) => graph.leave(box)});
let described = null;   // the answer to `describe`
let newestCounters = null;

connection.addEventListener('phase', ({detail}) => {
  notice.show(detail);
  header.showPhase(detail.phase);
  panel.showRole();
});
connection.addEventListener('ready', ({detail}) => begin(detail));
connection.addEventListener('state', ({detail}) => {
  header.showState(detail.state);
  if (detail.state === 'starts') beginAnew();
});
connection.addEventListener('log', ({detail}) => log.add(detail));
connection.addEventListener('params', ({detail}) => takeValues(detail.handlers));
connection.addEventListener('counters', ({detail}) => {
  if (newestCounters === null) requestAnimationFrame(drawCounters); // never called while nobody sees the page
  newestCounters = detail;
});
addEventListener('hashchange', () => location.reload()); // another link of the same run
setInterval(() => document.hidden || previews.showAges(), AGES_MS);
connection.open();

async function begin(welcome) {
  header.greet(welcome);
  try {
    const isFirst = described === null;
    described ??= await connection.call('describe');
    if (isFirst) graph.draw(described.picture);
    header.showPages(described.pages);
    const {columns} = await connection.call('subscribe', {topics: TOPICS, hz: EVENTS_HZ});
    counters.begin(described.plan, columns, graph.nodes);
    header.beginClocks(described.plan, columns.clocks);
    values.forget();
    takeValues(await connection.call('get')); // after `subscribe`, so that no change is lost
    previews.restart();
    notice.show({phase: 'ready'});
  } catch (refusal) {
    if (!connection.isReady) return;
    if (refusal.code === NOT_YET) {
      notice.show({phase: 'connecting', words: 'The run has no plan yet. The page shows it once there is one.'});
      setTimeout(() => connection.isReady && begin(welcome), ASK_AGAIN_MS);
      return;
    }
    notice.show({phase: 'gone', words: 'The run does not tell about itself.', refusal});
  }
}

// Nodes that meet once more make another plan.
function beginAnew() {
  if (described === null) return;
  described = null;
  begin(connection.welcome);
}

function takeValues(handlers) {
  values.take(handlers);
  panel.valuesChanged(handlers);
}

function drawCounters() {
  const event = newestCounters;
  newestCounters = null;
  counters.draw(event);
  header.showClocks(event.clocks);
  header.showTime(event.at_s);
}

function openPanel(box) {
  if (panel.box === box) {
    panel.close();
    return;
  }
  panel.open(box, described.plan, described.types);
  graph.select(box);
}

// An input shows what its edge brings: the output of another handler.
function openPort(box, port, side) {
  if (side === 'outputs') {
    openPreview(box, port);
    return;
  }
  const names = Object.keys(described.plan.handlers);
  const own = names[box.handlers[0]];
  const edge = described.plan.edges.find(({to}) => to === `${own}.${port}`);
  if (!edge) return;
  const dot = edge.from.lastIndexOf('.');
  const from = graph.nodeOf(names.indexOf(edge.from.slice(0, dot)));
  if (from) openPreview(from.box, edge.from.slice(dot + 1));
}

function openPreview(box, port) {
  const outputs = values.namesOf(box, described.plan).map(
    (name) => ({output: `${name}.${port}`, stream: name.slice(name.indexOf('@') + 1)}));
  previews.toggle(box, port, outputs);
}

function showPreviewState({box, port, refusal, isClosed}) {
  const button = graph.nodes.find((node) => node.box === box)?.ports.get(`outputs.${port}`);
  if (!button) return; // an output that nobody reads has no port in the graph
  button.setAttribute('aria-pressed', String(!isClosed));
  button.classList.toggle('refused', Boolean(refusal));
  button.classList.toggle('not-yet', refusal?.code === NOT_SHOWN);
  if (refusal) button.title = refusal.message;
}
