/**
 * Tests an installation by `docs/operate.md` on a machine with systemd: the units of `deploy/systemd` with all that systemd mounts and
 * filters for them, and the commands of an operator, which take their settings from the units.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { blockWith } from './deploy/pages.ts';
import { type SystemdMachine, startSystemdMachine, systemdProblem } from './support/systemd-machine.ts';

const title = 'on a machine with systemd';
const key = `ryk_${'k'.repeat(40)}`;

describe.skipIf(systemdProblem !== null)(
  systemdProblem === null ? title : `${title} (skipped: ${systemdProblem})`,
  () => {
    let machine: SystemdMachine;
    const waitFor = (script: string, seconds = 90): void => {
      const loop = `for _ in $(seq ${seconds * 5}); do ${script} && exit; sleep 0.2; done; journalctl -o cat -n 40; exit 1`;
      const { code, output } = machine.run(loop);
      expect(code, output).toBe(0);
    };
    const runyard = (args: string) => machine.run(`cd /root && /opt/runyard/bin/runyard ${args}`);

    beforeAll(async () => {
      machine = await startSystemdMachine();
      const { code, output } = machine.run(`set -e
      useradd --system --home-dir /var/lib/runyard --shell /usr/sbin/nologin runyard
      useradd --system --home-dir /var/lib/runyard-worker --shell /usr/sbin/nologin runyard-worker
      install -d -m 0755 /etc/runyard /etc/systemd/system/runyard-service.service.d
      cp /opt/runyard/deploy/systemd/* /etc/systemd/system/
      sed -i 's/^WatchdogSec=.*/WatchdogSec=12/' /etc/systemd/system/runyard-*.service
      umask 077
      echo '${key}' | tee /etc/runyard/operator-key >/etc/runyard/worker-key
      echo RUNYARD_BASE_URL=http://127.0.0.1:4180 >/etc/runyard/worker.env
      echo RUNYARD_RETENTION_AUDIT_DAYS=77 >/etc/runyard/service.env
      umask 022
      cat >/etc/systemd/system/runyard-service.service.d/secrets.conf <<END
[Service]
LoadCredential=operator-key:/etc/runyard/operator-key
Environment=RUNYARD_BOOTSTRAP_KEY_FILE=%d/operator-key
END
      systemctl daemon-reload
      systemctl start runyard-service runyard-worker`);
      expect(code, output).toBe(0);
      waitFor('journalctl -u runyard-worker -o cat | grep -q "connected to the service"');
    }, 120_000);
    afterAll(async () => await machine?.stop());

    test('a run executes in a sandbox of the worker', () => {
      const { code, output } =
        machine.run(`cd /opt/runyard && printf '\`\`\`sh\\necho in $(hostname) as $(id -u)\\n\`\`\`' |
      RUNYARD_BASE_URL=http://127.0.0.1:4180 RUNYARD_API_KEY=${key} RUNYARD_DATA_DIR=/root/client bin/runyard run --model runbook -`);
      expect(output).toContain('SUCCEEDED');
      expect(output).toMatch(/in \S+ as \d+/);
      expect(code).toBe(0);
    });

    test('the commands of an operator use settings, credentials and users of the units', () => {
      const status = runyard('status');
      expect(status.output).toMatch(/^running {2}http:\/\/127\.0\.0\.1:4180\n {2}worker /);
      expect(status.output).toContain('data folder /var/lib/runyard\n');
      expect(status.code).toBe(0);
      // The operator's key is only in the credential.
      expect(runyard('keys').output).toMatch(/ryk_kkkk…kkkk/);

      const doctor = JSON.parse(runyard('doctor --json').output) as {
        readonly works: boolean;
        readonly findings: readonly { readonly name: string; readonly level: string; readonly detail: string }[];
      };
      const detail = (name: string): string[] =>
        doctor.findings.filter((each) => each.name === name).map((each) => each.detail);
      expect(doctor.findings.filter(({ level }) => level === 'bad')).toEqual([]);
      expect(detail('unit')).toEqual([
        'runyard-service of systemd, as the user runyard',
        'runyard-worker of systemd, as the user runyard-worker',
      ]);
      expect(detail('workers')).toEqual(['1 of 1 connected worker takes runs']);
      expect(detail('sandbox')[0]).toMatch(/^bubblewrap/);

      const backup = machine.run(
        `cd /var/lib/runyard && /opt/runyard/bin/runyard backup all.backup && stat -c %U all.backup`,
      );
      expect(backup.output).toMatch(/wrote .*all\.backup[\s\S]*\nrunyard\n$/);
    });

    test('the timer makes a backup that can be verified', () => {
      const { output, code } = machine.run(`set -e
      systemctl enable -q --now runyard-backup.timer
      systemctl list-timers --no-pager | grep runyard-backup
      systemctl start runyard-backup.service
      cd /var/backups/runyard && ls *.backup && /opt/runyard/bin/runyard backup verify *.backup
      truncate -s -1 *.backup && ! /opt/runyard/bin/runyard backup verify *.backup`);
      expect(output).toMatch(/the backup is complete: [\d,]+ rows of \d+ tables/);
      expect(output).toContain('it was cut off');
      expect(code, output).toBe(0);
    });

    test('the commands of docs/upgrade.md upgrade it while a run is at work, and the run succeeds', () => {
      const command = `RUNYARD_BASE_URL=http://127.0.0.1:4180 RUNYARD_API_KEY=${key} RUNYARD_DATA_DIR=/root/client /opt/runyard/bin/runyard`;
      const created = machine.run(
        `printf '\`\`\`sh\\nwhile ! [ -e go ]; do sleep 0.2; done; echo done\\n\`\`\`' | ${command} run --detach --model runbook -`,
      );
      const runId = /[0-9a-f-]{36}/.exec(created.output)?.[0];
      waitFor(`${command} runs | grep ${runId} | grep -q INPROGRESS`);
      const block = blockWith('upgrade.md', 'text', 'systemctl daemon-reload');
      // The checkout is that of the test, whose version stays.
      const commands = block.replace(/^cd \/opt\/runyard && git .*$/m, 'cd /opt/runyard && bin/runyard --version');
      expect(commands).not.toBe(block);
      const { output, code } = machine.run(`set -e\nrm -f /etc/systemd/system/runyard-*.service\n${commands}`);
      expect(code, output).toBe(0);
      waitFor(`${command} runs | grep ${runId} | grep -q INPROGRESS`);
      machine.run('for each in $(find /var/lib/runyard-worker -name workspace -type d); do touch $each/go; done');
      waitFor(`${command} runs | grep ${runId} | grep -q SUCCEEDED`);
      machine.run(`sed -i 's/^WatchdogSec=.*/WatchdogSec=12/' /etc/systemd/system/runyard-*.service; systemctl daemon-reload
      systemctl restart runyard-service runyard-worker`);
      waitFor('/opt/runyard/bin/runyard status | grep -q slots');
    });

    test('a user without rights gets the advice to use sudo; own settings and files of other users are not mixed with those of the unit', () => {
      const plain = machine.run('setpriv --reuid=nobody --clear-groups /opt/runyard/bin/runyard status');
      expect(plain.output).toContain('repeat the command with sudo');
      expect(plain.code).toBe(2);
      const own = machine.run('RUNYARD_DATA_DIR=/root/other /opt/runyard/bin/runyard status');
      expect(own.output).toContain('not running');
      const file = machine.run(`cd /tmp && echo RUNYARD_PORT=4999 >foreign.env && chown nobody foreign.env &&
      /opt/runyard/bin/runyard --env-file foreign.env status`);
      expect(file.output).toContain('other users can change this file');
    });

    test('doctor with other settings says that it does not know those of the running service', () => {
      const { output, code } = machine.run(
        'RUNYARD_DATA_DIR=/root/other /opt/runyard/bin/runyard doctor --only service',
      );
      expect(output).toMatch(
        /✗ port +Runyard runs at http:\/\/127\.0\.0\.1:4180, but with settings that this command does not have/,
      );
      expect(output).toMatch(/database +not checked/);
      expect(code).toBe(1);
    });

    test('arguments of the command and properties of its unit contain no secret', () => {
      const { output } = machine.run(`cd /root; (/opt/runyard/bin/runyard doctor --json >/dev/null) &
      until systemctl list-units --no-legend 'runyard-command-*' | grep -q running; do sleep 0.05; done
      cat /proc/[0-9]*/cmdline | tr '\\0' ' '; systemctl show 'runyard-command-*'; wait`);
      expect(output).toContain('runyard-command-');
      expect(output).not.toContain(key);
    });

    test.each(['service', 'worker'])('systemd restarts a %s that hangs', (program) => {
      const unit = `runyard-${program}`;
      const pid = machine.run(`systemctl show -P MainPID ${unit}`).output.trim();
      machine.run(`kill -STOP ${pid}`);
      waitFor(`[ "$(systemctl show -P MainPID ${unit})" != ${pid} ] && systemctl is-active -q ${unit}`, 60);
      expect(machine.run(`journalctl -u ${unit}`).output).toContain('Watchdog timeout');
      waitFor('/opt/runyard/bin/runyard status | grep -q "slots"');
    });

    test('doctor says that the worker has stopped, and the settings of the unit are wrong', () => {
      machine.run('systemctl stop runyard-worker');
      waitFor('/opt/runyard/bin/runyard doctor | grep -q "none is connected"');
      expect(runyard('status').output).toMatch(/worker \S+: stopped/);
      machine.run('echo RUNYARD_PORT=no >>/etc/runyard/service.env');
      const { output, code } = runyard('doctor');
      expect(output).toMatch(/✗ settings +.*RUNYARD_PORT/);
      expect(code).toBe(1);
    });
  },
);
