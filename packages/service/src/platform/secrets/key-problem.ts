/** The place of an installation's keys, for messages about a problem with the keys. */
export interface KeyPlace {
  /** Ids of the keys; empty: there is no key yet. */
  readonly keyIds: readonly string[];
  /** Path of this installation's secrets-key. */
  readonly file: string;
  /** True: the keys come from RUNYARD_SECRETS_KEY. */
  readonly isSetting: boolean;
}

interface KeyProblem {
  /** Names the secrets that the keys do not decrypt. */
  readonly sealed: string;
  /**
   * Clauses of the message. `effect`: the consequence. `afterwards`: the result of a restart with the right key. `otherwise`: the repair
   * if the key is lost.
   */
  readonly effect: string;
  readonly afterwards: string;
  readonly otherwise: string;
}

/** Returns a text which says that the keys do not decrypt some secrets, and which file to copy. */
export function describeKeyProblem(
  { keyIds, file, isSetting }: KeyPlace,
  { sealed, effect, afterwards, otherwise }: KeyProblem,
): string {
  const wrong = isSetting
    ? 'RUNYARD_SECRETS_KEY is not the key that opens'
    : `${file} ${keyIds.length === 0 ? 'is missing: it holds the key that opens' : 'does not hold the key that opens'}`;
  const fix = isSetting
    ? 'Set it to the key of the installation that wrote them'
    : `Copy secrets-key to ${file} from the data folder of the installation that wrote them (or set RUNYARD_SECRETS_KEY, if that installation had it)`;
  return `${wrong} ${sealed}, ${effect}. ${fix}, and restart Runyard: ${afterwards}. If the key is lost, ${otherwise}.`;
}
