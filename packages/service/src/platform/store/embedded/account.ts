/**
 * The account that the server runs as. PostgreSQL refuses to run as root, so root starts the server as an unprivileged account; other users
 * run it under their own account.
 */
import { readFile, stat } from 'node:fs/promises';

export interface Account {
  readonly uid: number;
  readonly gid: number;
  /** False: /etc/passwd has no line for the account, which initdb requires. */
  readonly named: boolean;
}

/** The uid to use if the system has neither `postgres` nor `nobody`: outside the ranges of distributions and containers. */
const unnamedUid = 64_180;

interface PasswdLine {
  name: string;
  uid: number;
  gid: number;
}

/**
 * Chooses the account of the server. Root uses the owner of an existing folder: PostgreSQL must own its files, and `sudo runyard up`
 * after `runyard up` must not take the folder away from its user. Otherwise root uses `postgres`, else `nobody`, else a fixed high
 * uid.
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
