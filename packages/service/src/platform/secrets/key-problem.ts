/** Where an installation has its keys. Messages about a problem with the keys name this place. */
export interface KeyPlace {
  /** Ids of the keys; empty: there is no key yet. */
  readonly keyIds: readonly string[];
  /** Path of the file `secrets-key` of this installation. */
  readonly file: string;
  /** True: the keys come from RUNYARD_SECRETS_KEY. */
  readonly isSetting: boolean;
}

interface KeyProblem {
  /** The part of the message that names the secrets which the keys do not decrypt. */
  readonly sealed: string;
  /**
   * Parts of the message. `effect`: what does not work now. `afterwards`: what happens at a restart with the right key. `otherwise`:
   * what to do if the key is lost.
   */
  readonly effect: string;
  readonly afterwards: string;
  readonly otherwise: string;
}

/** Returns a message which says that the keys do not decrypt some secrets, and which file the operator has to copy. */
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
