// The page of a viewer: pictures come and are drawn, what the person does goes back.
import {Decoder} from './decoder.js';
import {Fates} from './fates.js';
import {Figures} from './figures.js';
import {Input} from './input.js';
import {Panel} from './panel.js';
import {Screen} from './screen.js';
import {Socket} from './socket.js';
import {acknowledgement, DRAWN, PASSED_OVER, readPicture} from './wire.js';

const PING_MS = 2000;

const byId = (id) => document.getElementById(id);
const stage = byId('stage'), notice = byId('notice'), control = byId('control'), take = byId('take');

// The fragment of the link has the token and the role. It stays there, so that a reload works; no server is told it.
const given = new URLSearchParams(location.hash.slice(1));
const link = {token: given.get('token') ?? '', role: given.get('role') === 'watch' ? 'watch' : 'steer'};
const name = location.pathname.split('/').filter(Boolean).at(-1) ?? 'view';
document.title = `${name} · millrace`;

const channel = new URL('channel', location.href);
channel.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
channel.hash = '';

const figures = new Figures(byId('overlay'));
const socket = new Socket(channel.href, link);
let viewer = 0, maySteer = false, holder = 0;

const tellFate = (picture, fate) => {
  if (fate === DRAWN) figures.done(picture);
  else if (fate === PASSED_OVER) ++figures.passedOver;
  else ++figures.failed;
  socket.sendBytes(acknowledgement(picture.seq, fate));
};
let fates = new Fates(tellFate), decoder = null; // of this connection
const screen = new Screen(byId('screen'), (picture, fate) => fates.settle(picture, fate));

const input = new Input(stage, byId('screen'), (message) => {
  if (!socket.isReady || !maySteer) return;
  if (holder && holder !== viewer) return; // another page has control: the button takes it over
  if (message.type === 'event') figures.sent(message.seq);
  socket.say(message);
});

// What is refused because another page has control comes back with the values that count.
const panel = new Panel(byId('panel'), byId('open'), (message) => socket.isReady && socket.say(message));

function showControl() {
  const mine = holder === viewer;
  if (!maySteer) control.textContent = 'You watch.';
  else if (mine) control.textContent = 'You have control.';
  else control.textContent = holder ? `Page ${holder} has control.` : 'Nobody has control: point at the picture to take it.';
  take.hidden = !maySteer || mine || !holder;
}

// H.264 needs a decoder that browsers give to secure pages alone.
async function findCodecs() {
  const all = ['jpeg'];
  if (typeof VideoDecoder === 'undefined') return all;
  const {supported} = await VideoDecoder.isConfigSupported({codec: 'avc1.42c028', optimizeForLatency: true});
  return supported ? ['h264', ...all] : all;
}
const codecs = findCodecs().catch(() => ['jpeg']);

function sayWhyJpeg(welcome) {
  const line = byId('insecure');
  const [words, command] = line.querySelectorAll('span, code');
  line.hidden = true;
  const isOffered = welcome.codecs.includes('h264');
  if (isSecureContext || !isOffered) {
    if (isOffered || !welcome.why_no_h264) return;
    words.textContent = `Pictures come as JPEG: ${welcome.why_no_h264}`;
    command.textContent = '';
  } else {
    words.textContent = 'Pictures come as JPEG: browsers decode video for pages by https or from their own machine alone. ' +
                        'This command leads to such a page, at the same link with 127.0.0.1:' + location.port + ' in it:';
    command.textContent = `ssh -L ${location.port}:127.0.0.1:${location.port} ${location.hostname}`;
  }
  line.querySelector('button').hidden = !command.textContent;
  line.hidden = false;
}

socket.addEventListener('welcome', async ({detail}) => {
  viewer = detail.viewer;
  maySteer = detail.steers;
  holder = detail.control;
  input.begin();
  panel.begin(maySteer);
  decoder = new Decoder((picture, frame) => screen.show(picture, frame), (picture, fate) => fates.settle(picture, fate));
  screen.begin();
  showControl();
  sayWhyJpeg(detail);
  const of = socket.socket, known = await codecs;
  if (of !== socket.socket) return; // there is another connection meanwhile
  socket.say({type: 'start', codecs: known});
  socket.say({type: 'ping', at: performance.now() / 1000});
});
// Pictures of a connection that is gone are nobody's any more.
socket.addEventListener('closed', () => {
  decoder?.end();
  fates = new Fates(tellFate);
});
socket.addEventListener('picture', ({detail}) => {
  const picture = readPicture(detail);
  fates.came(picture);
  figures.came(picture);
  decoder.take(picture);
});
socket.addEventListener('control', ({detail}) => {
  holder = detail.control;
  showControl();
});
socket.addEventListener('refused', ({detail}) => {
  holder = detail.control;
  showControl();
  panel.answered(detail);
});
socket.addEventListener('ack', ({detail}) => panel.answered(detail));
socket.addEventListener('values', ({detail}) => panel.told(detail));
socket.addEventListener('controls', ({detail: {controls}}) => {
  panel.offer(controls);
  input.turns = controls.some(({key}) => key === 'look.mode'); // something with a depth is shown
});
socket.addEventListener('pong', ({detail}) => figures.pong(detail));
socket.addEventListener('phase', ({detail}) => {
  notice.textContent = detail.words;
  stage.classList.toggle('has-notice', detail.words !== '');
});
setInterval(() => socket.isReady && socket.say({type: 'ping', at: performance.now() / 1000}), PING_MS);

take.onclick = () => {
  socket.say({type: 'take'});
  stage.focus();
};
byId('figures').onclick = ({target}) => {
  const overlay = byId('overlay');
  overlay.hidden = !overlay.hidden;
  target.setAttribute('aria-pressed', String(!overlay.hidden));
  figures.show();
};
byId('insecure').querySelector('button').onclick = () => {
  const command = byId('insecure').querySelector('code');
  const selection = getSelection();
  selection.selectAllChildren(command);
  document.execCommand('copy'); // a page that is not secure has no other clipboard
};

// For tests and for people with a console.
globalThis.millraceView = {figures, socket, screen, panel, input};
socket.open();
