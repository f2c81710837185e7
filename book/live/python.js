// Python in a web worker: starts it, asks it, ends it when a cell has no end.
export class Python {
  constructor(setup, { status, output, script = "./worker.js" }) {
    Object.assign(this, { setup, status, output, script, n: 0, waiting: new Map() });
  }

  // Starts the worker; the promise is kept when Python can run a cell.
  start() {
    this.worker = new Worker(new URL(this.script, import.meta.url), { type: "module" });
    this.worker.onmessage = ({ data }) => {
      if (data.status) return this.status(data.status);
      if (data.output) return this.output(data.output);
      const { resolve, reject } = this.waiting.get(data.n);
      this.waiting.delete(data.n);
      if (data.error === undefined) resolve(data.result);
      else reject(new Error(data.error));
    };
    this.worker.onerror = (event) => this.end(new Error(event.message || "the worker could not be loaded"));
    this.ready = this.ask("boot", this.setup());
    return this.ready;
  }

  ask(what, more) {
    return new Promise((resolve, reject) => {
      this.n += 1;
      this.waiting.set(this.n, { resolve, reject });
      this.worker.postMessage({ n: this.n, do: what, ...more });
    });
  }

  // An answer within some seconds, or the worker is ended and the promise is broken.
  async within(seconds, what, more) {
    const clock = setTimeout(() => this.end(new Error("no end")), 1000 * seconds);
    try {
      return await this.ask(what, more);
    } finally {
      clearTimeout(clock);
    }
  }

  end(error) {
    this.worker.terminate();
    const broken = [...this.waiting.values()];
    this.waiting.clear();
    for (const { reject } of broken) reject(error);
  }
}
