// Makes pictures of what comes, in order. Each ends in one of two ways: `onFrame(picture, frame)`, whose frame the caller
// closes, or `onEnd(picture, fate)`.
import {FAILED, H264, h264Name, PASSED_OVER} from './wire.js';

const USUAL_DURATION_US = 16_667; // a decoder in hardware may wait for more frames if one has no duration

export class Decoder {
  constructor(onFrame, onEnd) {
    this.onFrame = onFrame;
    this.onEnd = onEnd;
    this.video = null;       // of H.264, once a key frame has come
    this.decoding = new Map(); // pictures in the H.264 decoder, by timestamp
    this.jpegs = Promise.resolve();
  }

  take(picture) {
    picture.receivedMs = performance.now();
    if (picture.codec === H264) this.takeH264(picture);
    else this.jpegs = this.jpegs.then(() => this.takeJpeg(picture));
  }

  takeH264(picture) {
    if (picture.isKey) this.configure(picture);
    if (!this.video || this.video.state !== 'configured') { // it waits for a key frame, which the viewer is asked for
      this.onEnd(picture, FAILED);
      return;
    }
    const timestamp = picture.seq * USUAL_DURATION_US;
    this.decoding.set(timestamp, picture);
    try {
      this.video.decode(new EncodedVideoChunk({
        type: picture.isKey ? 'key' : 'delta', timestamp, duration: USUAL_DURATION_US, data: picture.bytes,
      }));
    } catch {
      this.fail();
    }
  }

  configure(picture) {
    const codec = h264Name(picture.bytes);
    const name = `${codec} ${picture.width}x${picture.height}`;
    if (!codec || (name === this.name && this.video?.state === 'configured')) return;
    this.fail(PASSED_OVER);
    this.name = name;
    this.video = new VideoDecoder({
      output: (frame) => {
        const of = this.decoding.get(frame.timestamp);
        this.decoding.delete(frame.timestamp);
        for (const [timestamp, swallowed] of this.decoding) { // decoders keep the order
          if (timestamp > frame.timestamp) break;
          this.decoding.delete(timestamp);
          this.onEnd(swallowed, PASSED_OVER);
        }
        if (of) this.done(of, frame);
        else frame.close();
      },
      error: () => this.fail(),
    });
    this.video.configure({codec, codedWidth: picture.width, codedHeight: picture.height, optimizeForLatency: true});
  }

  async takeJpeg(picture) {
    try {
      if (typeof ImageDecoder === 'undefined') {
        this.done(picture, await createImageBitmap(new Blob([picture.bytes], {type: 'image/jpeg'})));
        return;
      }
      const decoder = new ImageDecoder({data: picture.bytes, type: 'image/jpeg'});
      const {image} = await decoder.decode();
      decoder.close();
      this.done(picture, image);
    } catch {
      this.onEnd(picture, FAILED);
    }
  }

  done(picture, frame) {
    picture.decodedMs = performance.now();
    this.onFrame(picture, frame);
  }

  // What is under way comes to nobody.
  end() {
    this.onFrame = (picture, frame) => frame.close();
    this.onEnd = () => {};
    this.close();
  }

  // All that is under way is lost. The next key frame begins anew.
  fail(fate = FAILED) {
    const lost = [...this.decoding.values()];
    this.close();
    for (const picture of lost) this.onEnd(picture, fate);
  }

  close() {
    if (this.video && this.video.state !== 'closed') this.video.close();
    this.video = null;
    this.decoding.clear();
  }
}
