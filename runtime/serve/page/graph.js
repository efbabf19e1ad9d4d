// Draws the graph from the layout that `describe` gives: lanes and arrows as SVG, and the nodes above them.
import {element, svgElement} from './elements.js';
import {NodeView} from './node.js';
import {stretch} from './stretch.js';
import {Zoom} from './zoom.js';

// The layout has room for names and ports (plan/picture.cpp). A node shows numbers as well, so it needs more.
const NODE_WIDTH = 168;     // three numbers with their words in a line
const HEAD = 40;            // of a box in the layout, above its ports
const HEAD_AND_NUMBERS = 104;
const BETWEEN = 0.75;       // arrows need less than the layout gives them
const LANE_ABOVE = 12, LANE_BELOW = 4; // as in `plan --svg`
const SIDE = 4;

export class Graph {
  // `onNode(box)` and `onPort(box, port, side)` are called for clicks.
  constructor(target, zoomTarget, {onNode, onPort}) {
    this.onNode = onNode;
    this.onPort = onPort;
    this.nodes = [];
    this.canvas = element('div', {className: 'canvas'});
    this.sizer = element('div', {className: 'sizer'}, this.canvas);
    target.replaceChildren(this.sizer);
    this.zoom = new Zoom(target, this.sizer, this.canvas, zoomTarget);
  }

  draw({width, height, lanes, boxes, arrows}) {
    const atX = stretch(boxes.map((box) => [box.x, box.x + box.width, NODE_WIDTH]), BETWEEN);
    const atY = stretch(boxes.map((box) => [box.y, box.y + HEAD, HEAD_AND_NUMBERS]), 1);
    const size = {width: Math.ceil(atX(width)), height: Math.ceil(atY(height))};
    const svg = svgElement('svg', {...size, viewBox: `0 0 ${size.width} ${size.height}`, 'aria-hidden': 'true'});
    svg.append(tip('tip'), tip('tip-back'));
    for (const lane of lanes) if (lane.bottom > lane.top) svg.append(...laneShapes(lane, size.width, atY));
    for (const arrow of arrows) svg.append(arrowShape(arrow, atX, atY));
    this.nodes = boxes.map((box) => new NodeView(box, atX, atY, this.onNode, this.onPort));
    this.canvas.replaceChildren(svg, ...this.nodes.map((node) => node.root));
    this.zoom.resize(size);
  }

  select(box) {
    for (const node of this.nodes) node.root.classList.toggle('selected', node.box === box);
  }

  // Its panel was closed: a keyboard goes on where it was opened.
  leave(box) {
    this.select(null);
    this.nodes.find((node) => node.box === box)?.root.querySelector('.node-head').focus({preventScroll: true});
  }

  nodeOf(handler) { return this.nodes.find((node) => node.box.handlers.includes(handler)); }
}

function tip(id) {
  const marker = svgElement('marker', {id, viewBox: '0 0 8 8', refX: 8, refY: 4, markerWidth: 7, markerHeight: 7,
                                       orient: 'auto'});
  marker.append(svgElement('path', {d: 'M0 0L8 4L0 8z'}));
  return marker;
}

function laneShapes(lane, width, atY) {
  const top = atY(lane.top - LANE_ABOVE), bottom = atY(lane.bottom + LANE_BELOW);
  const size = {width: width - 2 * SIDE, height: bottom - top};
  const band = svgElement('rect', {class: 'lane', x: SIDE, y: top, ...size, rx: 6});
  const name = svgElement('text', {class: 'lane-name', x: SIDE + 8, y: top + 13});
  name.textContent = lane.name;
  return [band, name];
}

// An arrow that goes back has straight parts, the others are curves that begin and end level, as in `plan --svg`.
function arrowShape({corners, words, sync, back}, atX, atY) {
  const spots = corners.map(([x, y]) => [atX(x), atY(y)]);
  let path = `M${spots[0][0]} ${spots[0][1]}`;
  for (let n = 1; n < spots.length; ++n) {
    const [x, y] = spots[n], [beforeX, beforeY] = spots[n - 1];
    const middle = (beforeX + x) / 2;
    path += back || beforeY === y ? ` L${x} ${y}` : ` C${middle} ${beforeY} ${middle} ${y} ${x} ${y}`;
  }
  const shape = svgElement('path', {class: `arrow${sync ? '' : ' other'}${back ? ' back' : ''}`, d: path,
                                    'marker-end': back ? 'url(#tip-back)' : 'url(#tip)'});
  const title = svgElement('title');
  title.textContent = words;
  shape.append(title);
  return shape;
}
