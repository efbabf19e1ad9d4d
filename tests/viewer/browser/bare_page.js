// The least page that shows a viewer's pictures: what view_times.py compares the real one with. It has the same stream and
// the same credits, and nothing else: no controls, no figures, no ways out of an error.
const [token, codec] = arguments;
const canvas = document.body.appendChild(document.createElement('canvas'));
const context = canvas.getContext('2d', {alpha: false, desynchronized: true});
const socket = new WebSocket(location.href.replace('http', 'ws').replace(/#.*/, '') + 'channel');
const bare = window.bare = {latencies: [], answers: [], canvas, say: (message) => socket.send(JSON.stringify(message))};
const sentAt = new Map();
let offset = NaN, trip = Infinity, seq = 0, waiting = null, video = null, jpegs = Promise.resolve();
const pictures = new Map();

socket.binaryType = 'arraybuffer';
socket.onopen = () => bare.say({jsonrpc: '2.0', id: 1, method: 'hello', params: {protocol: 3, token, role: 'steer'}});
socket.onmessage = ({data}) => (typeof data === 'string' ? read(JSON.parse(data)) : take(data));

function read(message) {
  const now = performance.now() / 1000;
  if (message.type === 'welcome') {
    bare.say({type: 'start', codecs: [codec]});
    setInterval(() => bare.say({type: 'ping', at: performance.now() / 1000}), 500);
  }
  if (message.type === 'pong' && now - message.at < trip) {
    trip = now - message.at;
    offset = message.seconds - (now + message.at) / 2;
  }
}

function take(buffer) {
  const view = new DataView(buffer), flags = view.getUint8(21);
  const picture = {seq: view.getUint32(0), seconds: view.getFloat64(4), width: view.getUint32(12), height: view.getUint32(16),
                   answers: flags & 4 ? view.getUint32(24) : 0};
  const bytes = new Uint8Array(buffer, 24 + (flags & 4 ? 4 : 0) + (flags & 8 ? 4 : 0));
  if (codec === 'jpeg') {
    jpegs = jpegs.then(async () => show(picture, (await new ImageDecoder({data: bytes, type: 'image/jpeg'}).decode()).image));
    return;
  }
  if (!video) {
    video = new VideoDecoder({output: (frame) => show(pictures.get(frame.timestamp), frame), error: console.error});
    video.configure({codec: 'avc1.42c028', optimizeForLatency: true});
  }
  pictures.set(picture.seq, picture);
  video.decode(new EncodedVideoChunk({type: flags & 1 ? 'key' : 'delta', timestamp: picture.seq, duration: 16667, data: bytes}));
}

function show(picture, frame) {
  pictures.delete(picture.seq);
  if (waiting) {
    waiting.frame.close();
    acknowledge(waiting.picture, 2);
  } else {
    requestAnimationFrame(draw);
  }
  waiting = {picture, frame};
}

function draw() {
  const {picture, frame} = waiting;
  waiting = null;
  if (canvas.width !== picture.width) Object.assign(canvas, {width: picture.width, height: picture.height});
  context.drawImage(frame, 0, 0);
  frame.close();
  const now = performance.now();
  if (offset === offset) bare.latencies.push(now - (picture.seconds - offset) * 1000);
  const at = sentAt.get(picture.answers);
  if (at !== undefined) bare.answers.push(now - at);
  for (const sent of [...sentAt.keys()]) if (sent <= picture.answers) sentAt.delete(sent);
  acknowledge(picture, 1);
}

function acknowledge(picture, fate) {
  const view = new DataView(new ArrayBuffer(13));
  view.setUint32(0, picture.seq);
  view.setUint8(4, fate);
  view.setFloat64(5, performance.now() / 1000);
  socket.send(view);
}

bare.point = (x, y) => {
  bare.say({type: 'event', kind: 'move', seq: ++seq, sent_s: performance.now() / 1000, x, y, dx: 0, dy: 0, buttons: 0, modifiers: 0});
  sentAt.set(seq, performance.now());
};
