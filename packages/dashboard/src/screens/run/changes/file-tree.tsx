/** The changed files as a tree of folders. */
import type { ChangedFile } from '@runyard/contract/runs/changes';
import { visibleText } from '@runyard/contract/wire/visible';
import { Hint, Text } from '../../../parts/blocks.tsx';
import { Icon } from '../../../parts/icon.tsx';
import styles from './changes.module.css';

/** A folder of the tree. A folder whose only entry is a folder has a joint name, such as `src/api`. */
interface Folder {
  readonly folders: Map<string, Folder>;
  readonly files: ChangedFile[];
}

function treeOf(files: readonly ChangedFile[]): Folder {
  const root: Folder = { folders: new Map(), files: [] };
  for (const file of files) {
    let folder = root;
    for (const name of file.path.split('/').slice(0, -1)) {
      const next = folder.folders.get(name) ?? { folders: new Map(), files: [] };
      folder.folders.set(name, next);
      folder = next;
    }
    folder.files.push(file);
  }
  return root;
}

const baseOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

function joined(name: string, folder: Folder): [name: string, folder: Folder] {
  const [only] = folder.folders;
  if (only === undefined || folder.folders.size > 1 || folder.files.length > 0) return [name, folder];
  return joined(`${name}/${only[0]}`, only[1]);
}

interface TreeProps {
  readonly isViewed: (file: ChangedFile) => boolean;
  readonly open: (file: ChangedFile) => void;
}

/** Lists the files of a repository in their folders. A click on a file opens it. */
export const FileTree = ({ files, ...props }: TreeProps & { files: readonly ChangedFile[] }) => (
  <Entries folder={treeOf(files)} {...props} />
);

function Entries({ folder, isViewed, open }: TreeProps & { folder: Folder }) {
  return (
    <ul className={styles.tree}>
      {[...folder.folders].map((each) => {
        const [name, inner] = joined(...each);
        return (
          <li key={name}>
            <Text tone="muted" mono small cut>
              {visibleText(name)}/
            </Text>
            <Entries folder={inner} isViewed={isViewed} open={open} />
          </li>
        );
      })}
      {folder.files.map((file) => (
        <li key={file.path}>
          <button type="button" className={styles.leaf} onClick={() => open(file)}>
            <Icon name={isViewed(file) ? 'check' : 'file'} small />
            <Text mono small cut grow tone={isViewed(file) ? 'dim' : undefined}>
              {visibleText(baseOf(file.path))}
            </Text>
            {isViewed(file) && <Text spoken>viewed</Text>}
            <Hint>{file.status === 'modified' ? '' : file.status.replaceAll('_', ' ')}</Hint>
          </button>
        </li>
      ))}
    </ul>
  );
}
