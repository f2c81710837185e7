// @huggingface/gguf: node conformance/readers/huggingface.mjs MODULES FILE
// MODULES is the node_modules folder that the package is in. It reads what is before the data, and no data.
import path from "node:path";
import { pathToFileURL } from "node:url";

const [modules, file] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(path.join(path.resolve(modules), "@huggingface", name, "dist", "index.mjs")));
const { gguf, GGMLQuantizationType, GGUFValueType } = await load("gguf");

const plain = (value) => {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === "number" && (!Number.isFinite(value) || Object.is(value, -0))) return Object.is(value, -0) ? "-0.0" : String(value);
  return value;
};

try {
  const { typedMetadata, tensorInfos } = await gguf(path.resolve(file), { allowLocalFile: true, typedMetadata: true });
  const metadata = {}, types = {}, tensors = {};
  for (const [key, { value, type, subType }] of Object.entries(typedMetadata)) {
    if (["version", "tensor_count", "kv_count"].includes(key)) continue; // the header's numbers, which are not keys of the file
    metadata[key] = plain(value);
    types[key] = type === GGUFValueType.ARRAY ? `ARRAY of ${GGUFValueType[subType]}` : GGUFValueType[type];
  }
  for (const { name, shape, dtype, offset } of tensorInfos)
    tensors[name] = { type: GGMLQuantizationType[dtype] ?? String(dtype), dims: shape.map(String), offset: String(offset) };
  console.log(JSON.stringify({ metadata, types, tensors }));
} catch (error) {
  console.error(String(error?.message ?? error));
  process.exit(1);
}
