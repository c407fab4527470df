'use strict';
/*
 * Runs before a JavaScript program, the same on Node 18, 20 and 22. Two things, then it is out of the way:
 * decide whether the program is CommonJS or a module, as Node's own syntax detection does, and make writes
 * to standard output and error complete before process.exit().
 */
(() => {
  const fs = require('node:fs');
  const vm = require('node:vm');
  const Module = require('node:module');
  const { isMainThread } = require('node:worker_threads');
  const self = __filename;
  const main = '/box/main.cjs';

  // Children (fork, cluster, workers) are the program's own affair.
  const at = process.execArgv.indexOf(self);
  if (at > 0) process.execArgv.splice(at - 1, 2);
  delete require.cache[self];

  // A pipe is written asynchronously unless told otherwise, and process.exit() drops what waits.
  for (const name of ['stdout', 'stderr']) {
    const property = Object.getOwnPropertyDescriptor(process, name);
    if (!property || !property.get) continue;
    Object.defineProperty(process, name, {
      ...property,
      get() {
        const stream = property.get.call(process);
        Object.defineProperty(process, name, property);
        if (stream && stream._handle && stream._handle.setBlocking) stream._handle.setBlocking(true);
        return stream;
      },
    });
  }

  if (!isMainThread || process.argv[1] !== main) return;

  const parameters = ['exports', 'require', 'module', '__filename', '__dirname'];
  const onlyModule = [
    'Cannot use import statement outside a module',
    "Unexpected token 'export'",
    "Cannot use 'import.meta' outside a module",
  ];
  // Errors of CommonJS only: a module if the text compiles where top-level await is allowed.
  const maybeModule = [
    'await is only valid in async functions and the top level bodies of modules',
    'Unexpected reserved word',
    ...[...parameters].map((name) => `Identifier '${name}' has already been declared`),
  ];
  const compiles = (text, names) => {
    try {
      vm.compileFunction(text, names, { filename: main });
      return '';
    } catch (error) {
      return String(error && error.message);
    }
  };
  const isModule = (text) => {
    const message = compiles(text, parameters);
    if (!message) return false;
    if (onlyModule.some((m) => message.includes(m))) return true;
    if (!maybeModule.some((m) => message.includes(m))) return false;
    const again = compiles(`(async function() {${text}\n})();`, []);
    return !again || onlyModule.some((m) => again.includes(m));
  };

  let text;
  try {
    text = fs.readFileSync(main, 'utf8').replace(/^\ufeff/, '').replace(/^#!.*/, '');
  } catch {
    return;
  }
  if (!isModule(text)) return;

  const path = '/box/main.mjs';
  fs.renameSync(main, path);
  process.argv[1] = path;
  // Sources that mix both kinds are written daily: give a module what CommonJS would have had.
  for (const [name, value] of [['require', Module.createRequire(path)], ['__filename', path], ['__dirname', '/box']])
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
  const runMain = Module.runMain;
  Module.runMain = () => {
    Module.runMain = runMain;
    return runMain(path);
  };
})();
