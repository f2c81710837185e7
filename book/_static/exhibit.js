// The live exhibit: 64 weights, quantized as the library does it. Plain JavaScript; tests/project/test_exhibit.py compares
// the arithmetic with the library's. The page has the weights in data-weights; without this script it shows a picture.
"use strict";
{
  const HALF_MAX = 65504;

  // The float32 (as a double) rounded to what float16 holds, half to even.
  function toHalf(x) {
    const size = Math.abs(x);
    if (!(size < 65520)) {
      return Math.sign(x) * Infinity;
    }
    const exponent = size < 2 ** -14 ? -14 : Math.floor(Math.log2(size));
    const fixed = size < 2 ** exponent ? exponent - 1 : size >= 2 ** (exponent + 1) ? exponent + 1 : exponent;
    const step = 2 ** (Math.max(-14, fixed) - 10);
    return Math.sign(x) * rint(size / step) * step;
  }

  // The nearest whole number, half to even.
  function rint(x) {
    const low = Math.floor(x);
    const rest = x - low;
    return rest < 0.5 || (rest === 0.5 && low % 2 === 0) ? low : low + 1;
  }

  // The 16 bits of a finite float16.
  function halfBits(x) {
    const sign = x < 0 || Object.is(x, -0) ? 0x8000 : 0;
    const size = Math.abs(x);
    if (size < 2 ** -14) {
      return sign | (size / 2 ** -24);
    }
    let exponent = Math.floor(Math.log2(size));
    exponent += size >= 2 ** (exponent + 1) ? 1 : size < 2 ** exponent ? -1 : 0;
    return sign | ((exponent + 15) << 10) | ((size / 2 ** exponent - 1) * 1024);
  }

  // Integers of `bits` bits in two's complement, one after the other from the lowest bit of the first byte on.
  function pack(levels, bits) {
    const bytes = new Array(Math.ceil((levels.length * bits) / 8)).fill(0);
    levels.forEach((level, i) => {
      for (let bit = 0; bit < bits; bit += 1) {
        const at = i * bits + bit;
        bytes[at >> 3] |= ((level >> bit) & 1) << (at & 7);
      }
    });
    return bytes;
  }

  // weights: float32 numbers, as many as some groups have -> scales, levels, what comes back, its errors, the file's bytes.
  function quantize(weights, bits, groupSize) {
    const largest = 2 ** (bits - 1) - 1;
    const w = weights.map(Math.fround);
    const scales = [];
    for (let start = 0; start < w.length; start += groupSize) {
      const absmax = Math.max(...w.slice(start, start + groupSize).map(Math.abs));
      const scale = toHalf(Math.fround(absmax / largest));
      if (!Number.isFinite(scale)) {
        throw new RangeError(`a scale would be ${absmax / largest}, and float16 ends at ${HALF_MAX}`);
      }
      scales.push(scale);
    }
    const levels = w.map((x, i) => {
      const scale = scales[Math.floor(i / groupSize)];
      const level = scale === 0 ? 0 : rint(Math.fround(x / scale));
      return Math.max(-largest, Math.min(largest, level)) + 0;
    });
    const restored = levels.map((level, i) => Math.fround(level * scales[Math.floor(i / groupSize)]));
    const lost = w.map((x, i) => x - restored[i]);
    const rmse = Math.sqrt(lost.reduce((sum, x) => sum + x * x, 0) / w.length);
    const worst = Math.max(...lost.map(Math.abs));
    const scaleBytes = scales.flatMap((scale) => [halfBits(scale) & 255, halfBits(scale) >> 8]);
    return { scales, levels, restored, rmse, worst, bytes: [...scaleBytes, ...pack(levels, bits)] };
  }

  if (typeof module === "object") {
    module.exports = { quantize, pack, toHalf, rint, halfBits };
  } else if (typeof document === "object") {
    for (const place of document.querySelectorAll(".mq-exhibit")) {
      show(place);
    }
  }

  // ---- the page ----

  function show(place) {
    const WIDE = 640;
    const TALL = 240;
    const SIZES = [8, 16, 32, 64];
    const first = JSON.parse(place.dataset.weights).map(Math.fround);
    const reach = 2.2 * Math.max(...first.map(Math.abs));
    const state = { weights: [...first], bits: 4, size: 64, at: first.indexOf(Math.max(...first)), q: null };
    const column = WIDE / first.length;
    const y = (value) => TALL / 2 - (value / reach) * (TALL / 2 - 6);
    const short = (value, digits = 4) => value.toFixed(digits).replace("-", "\u2212");
    const signed = (level) => String(level).replace("-", "\u2212");

    place.innerHTML = `
      <div class="mq-ex-controls">
        <label>Bits a weight <output></output><input type="range" min="2" max="8" step="1" value="4"></label>
        <label>Weights that share a scale <output></output><input type="range" min="0" max="3" step="1" value="3"></label>
        <button type="button">Start again</button>
      </div>
      <div class="mq-ex-stage" tabindex="0" role="slider" aria-orientation="vertical"><svg viewBox="0 0 ${WIDE} ${TALL}"
        preserveAspectRatio="none" aria-hidden="true"></svg></div>
      <p class="mq-ex-hint">Drag a weight up or down. With the keyboard: left and right choose a weight, up and down move it.
        Bars are the weights, dashes what comes back, lines the levels.</p>
      <p class="mq-ex-chosen"></p>
      <dl><div><dt>error</dt><dd></dd></div><div><dt>scales</dt><dd></dd></div><div><dt>bytes</dt><dd></dd></div></dl>
      <p class="mq-ex-bytes" role="img"></p>`;
    const [bits, size] = place.querySelectorAll("input");
    const [bitsSaid, sizeSaid] = place.querySelectorAll("output");
    const [error, scales, total] = place.querySelectorAll("dd");
    const stage = place.querySelector(".mq-ex-stage");
    const svg = place.querySelector("svg");
    const chosen = place.querySelector(".mq-ex-chosen");
    const hex = place.querySelector(".mq-ex-bytes");

    function levelLines(q) {
      const largest = 2 ** (state.bits - 1) - 1;
      return q.scales
        .map((scale, g) => {
          const [left, right] = [g * state.size * column, (g + 1) * state.size * column];
          const edge = g ? `<path class="mq-ex-edge" d="M${left} 0V${TALL}"/>` : "";
          const gap = Math.abs(y(scale) - y(0));
          if (gap < 2.5) {
            const top = y(scale * largest);
            return `${edge}<rect class="mq-ex-many" x="${left}" y="${top}" width="${right - left}" height="${2 * (TALL / 2 - top)}"/>`;
          }
          let d = "";
          for (let level = -largest; level <= largest; level += 1) {
            d += `M${left} ${y(level * scale).toFixed(2)}H${right}`;
          }
          return `${edge}<path class="mq-ex-level" d="${d}"/>`;
        })
        .join("");
    }

    function drawing(q) {
      const bars = state.weights.map((weight, i) => {
        const top = Math.min(y(weight), y(0));
        const tall = Math.max(Math.abs(y(weight) - y(0)), 0.8);
        const on = i === state.at ? " mq-ex-on" : "";
        const mark = `<path class="mq-ex-back" d="M${i * column + 0.5} ${y(q.restored[i]).toFixed(2)}h${column - 1}"/>`;
        return `<rect class="mq-ex-bar${on}" x="${(i * column + 2).toFixed(2)}" y="${top.toFixed(2)}" width="${column - 4}" height="${tall.toFixed(2)}"/>${mark}`;
      });
      const x = (state.at + 0.5) * column;
      const pointer = `<path class="mq-ex-pointer" d="M${x - column} ${TALL}L${x + column} ${TALL}L${x} ${TALL - 9}Z"/>`;
      return levelLines(q) + bars.join("") + pointer;
    }

    function byteView(q) {
      const bytes = q.bytes.map((byte) => byte.toString(16).padStart(2, "0"));
      const head = 2 * q.scales.length;
      const from = head + Math.floor((state.at * state.bits) / 8);
      const to = head + Math.floor(((state.at + 1) * state.bits - 1) / 8);
      const cells = bytes.map((byte, i) => {
        const group = Math.floor(state.at / state.size);
        const mine = (i >= from && i <= to) || Math.floor(i / 2) === group && i < head;
        return `<span class="${i < head ? "mq-ex-scale" : "mq-ex-level-byte"}${mine ? " mq-ex-mine" : ""}">${byte}</span>`;
      });
      hex.setAttribute("aria-label", `the bytes in the file: ${bytes.join(" ")}`);
      hex.innerHTML = cells.join(" ");
      return { from, to, head };
    }

    function nibbles(q, { from, to }) {
      const mask = 2 ** state.bits - 1;
      const own = (q.levels[state.at] & mask).toString(2).padStart(state.bits, "0");
      if (state.bits === 4) {
        const byte = q.bytes[from];
        const half = state.at % 2 ? "high" : "low";
        return `byte ${from} is 0x${byte.toString(16).padStart(2, "0")}: its ${half} nibble, ${own}, is ${signed(q.levels[state.at])}`;
      }
      const where = from === to ? `byte ${from} has` : `bytes ${from} and ${to} have`;
      return `${where} its ${state.bits} bits, ${own}, which is ${signed(q.levels[state.at])}`;
    }

    function draw() {
      const q = quantize(state.weights, state.bits, state.size);
      const group = Math.floor(state.at / state.size);
      bitsSaid.textContent = state.bits;
      sizeSaid.textContent = state.size;
      size.setAttribute("aria-valuetext", `${state.size} weights`);
      svg.innerHTML = drawing(q);
      const place = byteView(q);
      const weight = state.weights[state.at];
      const said = `weight ${state.at + 1} of ${first.length}: ${short(weight)}, level ${signed(q.levels[state.at])}, comes back as ${short(q.restored[state.at])}`;
      stage.setAttribute("aria-label", "a weight of the model; left and right choose another");
      stage.setAttribute("aria-valuemin", (-reach).toFixed(4));
      stage.setAttribute("aria-valuemax", reach.toFixed(4));
      stage.setAttribute("aria-valuenow", weight.toFixed(4));
      stage.setAttribute("aria-valuetext", said);
      chosen.textContent = `${said[0].toUpperCase()}${said.slice(1)}; in the file, ${nibbles(q, place)}.`;
      error.textContent = `${short(q.rmse, 5)} on average (rms), at most ${short(q.worst, 5)}`;
      const listed = q.scales.map((scale, g) => (g === group && q.scales.length > 1 ? `[${short(scale)}]` : short(scale)));
      scales.textContent = listed.join(" ");
      const all = q.bytes.length;
      const rate = ((8 * all) / first.length).toFixed(2).replace(/\.?0+$/, "");
      total.textContent = `${all}: ${place.head} of scales (bold), ${all - place.head} of integers; ${rate} bits a weight, ${((4 * first.length) / all).toFixed(1)} times smaller than float32`;
    }

    function move(value) {
      state.weights[state.at] = Math.fround(Math.max(-reach, Math.min(reach, value)));
      draw();
    }

    bits.addEventListener("input", () => {
      state.bits = Number(bits.value);
      draw();
    });
    size.addEventListener("input", () => {
      state.size = SIZES[Number(size.value)];
      draw();
    });
    place.querySelector("button").addEventListener("click", () => {
      Object.assign(state, { weights: [...first], bits: 4, size: 64 });
      [bits.value, size.value] = [4, 3];
      draw();
    });
    stage.addEventListener("keydown", (event) => {
      const step = reach / 50;
      const last = first.length - 1;
      const steps = { ArrowUp: step, ArrowDown: -step, PageUp: 10 * step, PageDown: -10 * step };
      const places = { ArrowLeft: Math.max(0, state.at - 1), ArrowRight: Math.min(last, state.at + 1), Home: 0, End: last };
      if (event.key in steps) {
        move(state.weights[state.at] + steps[event.key]);
      } else if (event.key in places) {
        state.at = places[event.key];
        draw();
      } else {
        return;
      }
      event.preventDefault();
    });
    const value = (event) => {
      const box = svg.getBoundingClientRect();
      return ((TALL / 2 - ((event.clientY - box.top) / box.height) * TALL) / (TALL / 2 - 6)) * reach;
    };
    stage.addEventListener("pointerdown", (event) => {
      const box = svg.getBoundingClientRect();
      state.at = Math.max(0, Math.min(first.length - 1, Math.floor(((event.clientX - box.left) / box.width) * first.length)));
      stage.setPointerCapture(event.pointerId);
      const start = { pointer: value(event), weight: state.weights[state.at] };
      stage.onpointermove = (moved) => move(start.weight + value(moved) - start.pointer);
      draw();
    });
    for (const end of ["pointerup", "pointercancel"]) {
      stage.addEventListener(end, () => {
        stage.onpointermove = null;
      });
    }
    draw();
  }
}
