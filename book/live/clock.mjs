// A clock for Python in a worker or in Node. Pyodide reads alarm[0] between two steps: 0, or the number of the signal that is due.
// arm(seconds, interval, number) sets when that is; 0 seconds switches the clock off.
export function clock() {
  let due = Infinity;
  let every = 0; // milliseconds until the signal comes again; 0 for once
  let signal = 0;
  const alarm = {
    length: 1,
    get 0() {
      if (performance.now() < due) return 0;
      due = every ? performance.now() + every : Infinity;
      return signal;
    },
    set 0(_) {}, // Pyodide writes 0 when it has seen the signal
  };
  const arm = (seconds, interval, number) => {
    due = seconds ? performance.now() + 1000 * seconds : Infinity;
    every = 1000 * interval;
    signal = number;
  };
  return { alarm, arm };
}
