// The binary messages of a viewer: pictures come, acknowledgements go. plugins/viewer/wire.h has the layouts.

export const H264 = 0, JPEG = 1;
export const DRAWN = 1, PASSED_OVER = 2, FAILED = 3;

const IS_KEY = 1, IS_STILL = 2, HAS_ANSWER = 4, HAS_TIME = 8;

export function readPicture(buffer) {
  const view = new DataView(buffer);
  const flags = view.getUint8(21);
  let at = 24;
  const next = () => { at += 4; return view.getUint32(at - 4); };
  const picture = {
    seq: view.getUint32(0), seconds: view.getFloat64(4), width: view.getUint32(12), height: view.getUint32(16),
    codec: view.getUint8(20), isKey: (flags & IS_KEY) !== 0, isStill: (flags & IS_STILL) !== 0,
    answers: flags & HAS_ANSWER ? next() : 0,
    encodedMs: flags & HAS_TIME ? next() / 1000 : 0,
    size: buffer.byteLength,
  };
  picture.bytes = new Uint8Array(buffer, at);
  return picture;
}

export function acknowledgement(seq, fate) {
  const view = new DataView(new ArrayBuffer(13));
  view.setUint32(0, seq);
  view.setUint8(4, fate);
  view.setFloat64(5, performance.now() / 1000);
  return view.buffer;
}

// The name by which a browser knows the H.264 of a unit in Annex B that begins with its parameters: "avc1.42c01f".
export function h264Name(bytes) {
  for (let i = 0; i + 7 < bytes.length; ++i) {
    const isStart = bytes[i] === 0 && bytes[i + 1] === 0 && bytes[i + 2] === 1;
    if (!isStart || (bytes[i + 3] & 31) !== 7) continue;
    return 'avc1.' + [4, 5, 6].map((n) => bytes[i + n].toString(16).padStart(2, '0')).join('');
  }
  return null;
}
