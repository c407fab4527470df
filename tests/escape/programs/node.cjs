// The same boundary from Node: what its own interfaces reach.
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const childProcess = require('node:child_process');
const { Worker } = require('node:worker_threads');

const say = (check, result) => fs.writeSync(1, JSON.stringify({ check, result: String(result) }) + '\n');
const tried = (check, call) => {
  try {
    call();
    say(check, 'allowed');
  } catch {
    say(check, 'denied');
  }
};

tried('5/init/node-environ', () => fs.readFileSync('/proc/1/environ'));
tried('5/init/node-mem', () => fs.openSync('/proc/1/mem', 'r+'));
tried('5/init/node-exe', () => fs.readlinkSync('/proc/1/exe'));
tried('5/signals/node-kill-init', () => process.kill(1, 'SIGKILL'));
tried('5/signals/node-nice-down', () => os.setPriority(0, -5));
tried('5/privilege/node-setuid', () => process.setuid(0));
tried('5/privilege/node-setgroups', () => process.setgroups([0]));
tried('5/read-only/node-write-self', () => fs.openSync(process.execPath, 'r+'));
tried('5/read-only/node-preload', () => fs.openSync('/.reeve/preload.cjs', 'r+'));
tried('5/read-only/node-etc', () => fs.writeFileSync('/etc/hosts', 'x'));
tried('5/null-inode/node-chmod', () => fs.chmodSync('/dev/null', 0o600));
tried('5/leaked-fds/node-reopen-stdin', () => fs.readFileSync('/dev/stdin'));
say('5/host-names/node-hostname', os.hostname());
say('5/leaked-fds/node-reports', process.report ? process.report.getReport().header.commandLine.filter((a) => /yaml|spawner/.test(a)).length : 0);
const run = (command, args) => childProcess.spawnSync(command, args);
say('5/privilege/node-child', run('/bin/sh', ['-c', 'id -u']).stdout.toString().trim());
say('5/seccomp/node-child-unshare', run('/usr/bin/unshare', ['-Ur', 'true']).status === 0 ? 'allowed' : 'denied');
say('5/calls/node-child-mount', run('/bin/mount', ['-t', 'tmpfs', 'none', '/tmp']).status === 0 ? 'allowed' : 'denied');
say('5/calls/node-child-dmesg', run('/bin/dmesg', []).status === 0 ? 'allowed' : 'denied');
say('5/privilege/node-child-su', run('/bin/su', ['-c', 'true']).status === 0 ? 'allowed' : 'denied');

const worker = new Worker("require('node:worker_threads').parentPort.postMessage(require('node:fs').readFileSync('/proc/thread-self/status', 'utf8').match(/Seccomp:\\s*(\\d)/)[1])", { eval: true });
worker.on('message', (mode) => {
  say('9/amicontained/node-worker-Seccomp', mode);
  const socket = net.connect({ path: '/tmp/reeve-escape-test.socket' });
  socket.on('error', () => say('5/abstract-unix/node-connect-path', 'denied'));
  socket.on('connect', () => { say('5/abstract-unix/node-connect-path', 'allowed'); socket.destroy(); });
});
