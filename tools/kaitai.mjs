// Compile descriptions of formats, a JSON list on standard input, to Python: {file: text} as JSON on standard output.
//     node tools/kaitai.mjs kaitai-struct-compiler.js < descriptions.json
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const compiler = createRequire(import.meta.url)(path.resolve(process.argv[2]));
const found = {};
for (const description of JSON.parse(fs.readFileSync(0, "utf8"))) {
  Object.assign(found, await compiler.compile("python", description, null, true)); // true: where each field lies
}
process.stdout.write(JSON.stringify(found));
