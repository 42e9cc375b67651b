/** Finds names of branches that mislead git, code hosts or people. */

/**
 * Names that begin like a full name of a ref: `git push origin main` fails if the repository has both `refs/heads/main` and
 * `refs/heads/refs/heads/main`.
 */
const refPrefixes = /^(?:refs|heads|tags|remotes|origin)\//i;
/** Names that have a meaning in git itself: HEAD, FETCH_HEAD, @, stash. */
const ownNames = /^(?:@|stash|(?:[A-Z]+_)*HEAD)$/i;
/** Names that look like a commit id: code hosts and git would read them as a commit. */
const commitId = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/i;
/** Direction marks, joiners, fillers and other invisible characters. */
const invisible = /[\p{Cf}\p{DI}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/u;

/** Returns the reason why no run may push a branch with this name; undefined if the name does not mislead. */
export function misleadingName(branch: string): string | undefined {
  if (invisible.test(branch)) return 'the name of the branch has invisible characters: choose another name';
  if (ownNames.test(branch)) return `${branch} is a name of git itself: choose another name`;
  if (commitId.test(branch)) return 'the name of the branch looks like the id of a commit: choose another name';
  const [prefix] = refPrefixes.exec(branch) ?? [];
  if (prefix !== undefined)
    return `git could not distinguish ${branch} from the branch ${branch.slice(prefix.length)}: choose a name that does not begin with ${prefix}`;
  if (branch.startsWith('-')) return 'git treats a name that begins with - as an option: choose another name';
  return undefined;
}

/**
 * Letters that look like an ASCII letter, in lower case and after compatibility decomposition (NFKD). They are Cyrillic, Greek, Armenian
 * and Cherokee letters, and Latin letters that have no decomposition. Source: confusables.txt of Unicode (UTS 39).
 */
const lookAlikes: Readonly<Record<string, string>> = {
  a: 'аαɑ\u{ff41}ᴀꭺ',
  b: 'ЬьƄƅʙвβꮟ',
  c: 'сϲᴄⲥꮯ',
  d: 'ԁժꮷꓒɗđð',
  e: 'еєɛҽᥱ℮ꬲ',
  f: 'ƒꞙẝϝꬵ',
  g: 'ɡցԍᶃǥ',
  h: 'һհнħꮒћ',
  i: 'іıɩιꙇꭵíї',
  j: 'јϳյ',
  k: 'кκĸᴋⲕ',
  l: 'ӏⅼǀɭłℓ|1ן',
  m: 'мᴍ\u{ab51}ⅿɱꮇ',
  n: 'пոռηɴꞃŋᴨ',
  o: 'оοσօ0øᴏഠ๐໐০ꬽθө',
  p: 'рρϱⲣƿ',
  q: 'ԛգզ',
  r: 'гᴦⲅꭇꮁꭈɼ',
  s: 'ѕꜱʂƽꮪ',
  t: 'тτᴛŧƭ',
  u: 'υսʋᴜꞟꭎցմ',
  v: 'ѵνᴠטⴸꮩ',
  w: 'ѡшԝաᴡωꮃ',
  x: 'хχ×ⅹ᙮',
  y: 'уүγʏỿꭚɣ',
  z: 'ᴢʐꮓƶ',
};
const asciiOf: ReadonlyMap<string, string> = new Map(
  Object.entries(lookAlikes).flatMap(([letter, others]) => [...others].map((other) => [other.toLowerCase(), letter])),
);

/** Returns the same text for names that look alike. */
export function skeletonOf(name: string): string {
  const plain = name.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
  return [...plain].map((letter) => asciiOf.get(letter) ?? letter).join('');
}
