// The log of the run, folded away until somebody opens it; its last line is in sight.
import {element, show} from './elements.js';

const LINES_MAX = 500; // on the page; the run keeps 1,000

export class Log {
  constructor(root, lines, count, last) {
    Object.assign(this, {root, lines, countView: count, last, seen: 0});
    // A long line is cut until somebody clicks it.
    lines.addEventListener('click', ({target}) => target.closest('li')?.classList.toggle('whole'));
  }

  // `left_out` is the protocol's name for lines before these that the run does not keep any more.
  add({lines, left_out: leftOut = 0}) {
    const isAtEnd = this.lines.scrollHeight - this.lines.scrollTop - this.lines.clientHeight < 24;
    const made = document.createDocumentFragment();
    if (leftOut > 0) made.append(element('li', {className: 'gap'}, `${leftOut} lines are left out here`));
    for (const line of lines) made.append(lineView(line));
    this.lines.append(made);
    while (this.lines.childElementCount > LINES_MAX) this.lines.firstElementChild.remove();
    this.seen += lines.length + leftOut;
    show(this.countView, `${this.seen}`);
    const newest = lines.at(-1);
    if (newest) {
      show(this.last, newest.text);
      this.last.dataset.level = newest.level;
    }
    if (this.root.open && isAtEnd) this.lines.scrollTop = this.lines.scrollHeight;
  }
}

function lineView({time, level, code, handler, clock, tick, text}) {
  const line = element('li', {'data-level': level, title: 'click: the whole line'});
  const part = (className, words) => line.append(element('span', {className}, words), ' ');
  part('time', time.slice(11, 23)); // of "2026-11-29T21:56:49.741412Z"
  part('level', level);
  if (code) part('code', code);
  if (handler) part('from', handler);
  else if (clock) part('from', clock);
  if (tick !== undefined) part('tick', `tick ${tick}`);
  part('text', text);
  return line;
}
