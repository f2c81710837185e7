// llama.cpp in the page: loads a GGUF file that Python wrote, and goes on with a text; or gives llama.cpp's own message.
import { Wllama } from "./llama/index.js";

const COMPLAINT = /error|failed|invalid|unsupported|missing|not found|corrupt|unexpected/i;

export async function complete(bytes, prompt, count) {
  const log = [];
  const keep = (...parts) => log.push(parts.join(" "));
  const llama = new Wllama(
    { default: new URL("./llama/wllama.wasm", import.meta.url).href },
    { logger: { debug: keep, log: keep, warn: keep, error: keep } },
  );
  try {
    await llama.loadModel([new Blob([bytes])], { n_threads: 1, n_ctx: 256 });
    const answer = await llama.createCompletion({ prompt, max_tokens: count, temperature: 0, logprobs: 1 });
    const { text, logprobs } = answer.choices[0];
    return { text, ids: logprobs.content.map((token) => token.id), log };
  } catch (error) {
    const said = log.filter((line) => COMPLAINT.test(line));
    return { error: [...said, String(error.message ?? error)].join("\n"), log };
  } finally {
    await llama.exit().catch(() => {});
  }
}
