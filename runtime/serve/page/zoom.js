// Makes the graph larger and smaller, and lets it be dragged; it fits its pane until somebody zooms.
import {element} from './elements.js';

const SMALLEST = 0.3, LARGEST = 2.5, STEP = 1.2;
const FIT_LEAST = 0.6; // below it numbers cannot be read: the pane scrolls instead
const DRAG_FROM = 4;   // px: less is a click

export class Zoom {
  constructor(pane, sizer, canvas, buttons) {
    Object.assign(this, {pane, sizer, canvas, scale: 1, isFitted: true, size: {width: 0, height: 0}});
    const button = (text, label, onclick) => (
      element('button', {type: 'button', 'aria-label': label, title: label, onclick}, text));
    buttons.append(button('−', 'smaller', () => this.by(1 / STEP)), button('+', 'larger', () => this.by(STEP)),
                   button('fit', 'fit the graph into its pane', () => this.fit()));
    pane.addEventListener('wheel', (event) => this.wheel(event), {passive: false});
    pane.addEventListener('pointerdown', (event) => this.drag(event));
    new ResizeObserver(() => this.isFitted && this.fit()).observe(pane);
  }

  resize(size) {
    this.size = size;
    this.fit();
  }

  fit() {
    this.isFitted = true;
    const {paddingLeft, paddingRight} = getComputedStyle(this.pane);
    const room = this.pane.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
    this.apply(Math.max(FIT_LEAST, Math.min(1, room / (this.size.width || 1))));
  }

  by(factor) {
    this.isFitted = false;
    this.apply(Math.max(SMALLEST, Math.min(LARGEST, this.scale * factor)));
  }

  apply(scale) {
    this.scale = scale;
    this.canvas.style.transform = `scale(${scale})`;
    this.sizer.style.width = `${this.size.width * scale}px`;
    this.sizer.style.height = `${this.size.height * scale}px`;
  }

  wheel(event) {
    if (!event.ctrlKey) return; // plain wheels scroll
    event.preventDefault();
    const before = this.scale, box = this.pane.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    this.by(event.deltaY < 0 ? STEP : 1 / STEP);
    const grown = this.scale / before;
    this.pane.scrollLeft = (this.pane.scrollLeft + x) * grown - x;
    this.pane.scrollTop = (this.pane.scrollTop + y) * grown - y;
  }

  drag(event) {
    if (event.button !== 0 || event.target.closest('button')) return;
    const {clientX, clientY} = event, {scrollLeft, scrollTop} = this.pane;
    let isDragged = false;
    const move = (now) => {
      const dx = now.clientX - clientX, dy = now.clientY - clientY;
      isDragged ||= Math.hypot(dx, dy) > DRAG_FROM;
      if (isDragged) this.pane.scrollTo(scrollLeft - dx, scrollTop - dy);
    };
    const end = () => {
      removeEventListener('pointermove', move);
      removeEventListener('pointerup', end);
      removeEventListener('pointercancel', end);
    };
    addEventListener('pointermove', move);
    addEventListener('pointerup', end);
    addEventListener('pointercancel', end);
  }
}
