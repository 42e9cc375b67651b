import { Icon } from './icon.tsx';
import { Menu, type MenuEntry } from './menu.tsx';
import { showToast } from './toast.tsx';

/**
 * Shows the menu ⋯ of a screen. It always has an entry that copies the command that reads the object of the screen. `path`: the path of
 * the object in the API, such as `/agent/schedules/ID`.
 */
export function MoreMenu({ path, entries = [] }: { path: string; entries?: readonly MenuEntry[] }) {
  const command = `curl -H "Authorization: Bearer $RUNYARD_API_KEY" ${location.origin}/api/v1${path}`;
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(command);
      showToast('Copied the curl command');
    } catch {
      // Browsers give pages without TLS no clipboard, except on localhost.
      showToast(`Copy it here: ${command}`);
    }
  };
  return (
    <Menu
      label="More actions"
      className="btn icon"
      entries={[...entries, { label: 'Copy as curl', run: () => void copy() }]}
    >
      <Icon name="more" small />
    </Menu>
  );
}
