import { spawn } from 'node:child_process';

/**
 * Regularly reports to systemd that this process works, if its unit has `WatchdogSec=`. If the event loop is blocked, the reports stop, and
 * systemd kills and restarts the process. systemd's own program sends the messages, because Node has no datagram sockets for local names.
 * See sd_watchdog_enabled(3).
 */
export function answerWatchdog(env: Readonly<Record<string, string | undefined>> = process.env): void {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: limit, WATCHDOG_PID: pid } = env;
  if (socket === undefined || limit === undefined || (pid !== undefined && pid !== String(process.pid))) return;
  const tell = (): void =>
    void spawn('systemd-notify', ['WATCHDOG=1'], { stdio: 'ignore', env: { PATH: env.PATH, NOTIFY_SOCKET: socket } })
      // A missing program has the same effect as a message that got lost: systemd decides.
      .on('error', () => {});
  tell();
  setInterval(tell, Number(limit) / 1000 / 3).unref();
}
