// Draws the newest frame at the display's next refresh. A frame that a newer one overtakes before that is passed over:
// also one whose decoder was slower than that of the picture after it.
import {DRAWN, FAILED, PASSED_OVER} from './wire.js';

export class Screen {
  // `onDone(picture, fate)` is called once for each frame.
  constructor(canvas, onDone) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d', {alpha: false, desynchronized: true});
    this.onDone = onDone;
    this.waiting = null; // {picture, frame}
    this.newest = 0;     // its sequence number, or that of the one drawn last
    document.addEventListener('visibilitychange', () => this.waiting && this.refresh());
  }

  // A new connection counts from 1.
  begin() { this.newest = 0; }

  show(picture, frame) {
    if (picture.seq < this.newest) {
      frame.close();
      this.onDone(picture, PASSED_OVER);
      return;
    }
    this.newest = picture.seq;
    if (this.waiting) {
      this.waiting.frame.close();
      this.onDone(this.waiting.picture, PASSED_OVER);
    } else {
      this.refresh();
    }
    this.waiting = {picture, frame};
  }

  // A page in the background has no refreshes; there a picture is drawn after a while.
  refresh() {
    if (document.hidden) setTimeout(() => this.draw(), 50);
    else requestAnimationFrame(() => this.draw());
  }

  draw() {
    if (!this.waiting) return;
    const {picture, frame} = this.waiting;
    this.waiting = null;
    const {canvas} = this;
    if (canvas.width !== picture.width || canvas.height !== picture.height) {
      canvas.width = picture.width;
      canvas.height = picture.height;
    }
    let fate = FAILED;
    try {
      this.context.drawImage(frame, 0, 0);
      fate = DRAWN;
    } finally {
      frame.close();
      picture.drawnMs = performance.now();
      this.onDone(picture, fate);
    }
  }
}
