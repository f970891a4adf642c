// SPDX-License-Identifier: BSL-1.0
// Runs models of varve by onnxruntime-node and compares the results: onnx.js <folder>, with cases.json in it.
'use strict';
const fs = require('fs');
const path = require('path');
const ort = require('onnxruntime-node');

const arrays = {float32: Float32Array, float64: Float64Array, int32: Int32Array, int64: BigInt64Array, bool: Uint8Array};
function tensor(t) {
  const numbers = t.dtype === 'int64' ? t.data.map(BigInt) : t.data;
  return new ort.Tensor(t.dtype, arrays[t.dtype].from(numbers), t.sizes);
}

(async () => {
  const folder = process.argv[2];
  let values = 0;
  for (const c of JSON.parse(fs.readFileSync(path.join(folder, 'cases.json')))) {
    const session = await ort.InferenceSession.create(path.join(folder, c.model), {logSeverityLevel: 3});
    const feeds = {};
    for (const t of c.inputs) feeds[t.name] = tensor(t);
    const results = await session.run(feeds);
    for (const want of c.outputs) {
      const got = results[want.name];
      const say = (what) => { throw new Error(`${c.model}: ${want.name}: ${what}`); };
      if (!got) say('missing');
      if (got.type !== want.dtype) say(`${got.type} instead of ${want.dtype}`);
      if (got.dims.join() !== want.sizes.join()) say(`[${got.dims}] instead of [${want.sizes}]`);
      for (let k = 0; k < want.data.length; ++k) {
        const a = Number(got.data[k]), b = want.data[k];
        if (!(Math.abs(a - b) <= 2e-5 * Math.max(1, Math.abs(b)))) say(`element ${k} is ${a} instead of ${b}`);
        ++values;
      }
    }
  }
  console.log(`onnxruntime ${require('onnxruntime-node/package.json').version}: ${values} values are the same`);
})().catch((e) => { console.error(e.message); process.exit(1); });
