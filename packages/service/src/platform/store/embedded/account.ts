/**
 * Chooses the account of the embedded PostgreSQL server. PostgreSQL refuses to run as root. So if root starts the service, the server
 * runs under an unprivileged account. Otherwise the server runs under the account of the service.
 */
import { readFile, stat } from 'node:fs/promises';

export interface Account {
  readonly uid: number;
  readonly gid: number;
  /** False: /etc/passwd has no line for the account. initdb requires such a line. */
  readonly named: boolean;
}

/** The uid to use if the system has neither a user `postgres` nor a user `nobody`. Distributions and containers do not use this uid. */
const unnamedUid = 64_180;

interface PasswdLine {
  name: string;
  uid: number;
  gid: number;
}

/**
 * Chooses the account of the server. If root starts the service and the cluster folder exists, chooses the owner of the folder:
 * PostgreSQL must own its files, and `sudo runyard up` after `runyard up` must not take the folder away from the user. For a new
 * folder of root, chooses `postgres`, else `nobody`, else a fixed high uid.
 */
export async function chooseAccount(clusterFolder: string, passwdFile = '/etc/passwd'): Promise<Account> {
  const passwd = await readPasswd(passwdFile);
  const account = (uid: number, gid: number): Account => ({ uid, gid, named: passwd.some((line) => line.uid === uid) });
  const [uid, gid] = [process.getuid?.() ?? -1, process.getgid?.() ?? -1];
  if (uid !== 0) return account(uid, gid);
  const owner = await stat(clusterFolder).catch(() => undefined);
  if (owner !== undefined && owner.uid !== 0) return account(owner.uid, owner.gid);
  const line = passwd.find(({ name }) => name === 'postgres') ?? passwd.find(({ name }) => name === 'nobody');
  return line === undefined ? account(unnamedUid, unnamedUid) : account(line.uid, line.gid);
}

async function readPasswd(file: string): Promise<PasswdLine[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text.split('\n').flatMap((line) => {
    const [name, , uid, gid] = line.split(':');
    return name && uid && gid && Number(uid) !== 0 ? [{ name, uid: Number(uid), gid: Number(gid) }] : [];
  });
}

/** Options for `spawn` that make a child run as the account; empty if this process already runs as this account. */
export function runAs(account: Account): { uid?: number; gid?: number } {
  return account.uid === process.getuid?.() ? {} : { uid: account.uid, gid: account.gid };
}
