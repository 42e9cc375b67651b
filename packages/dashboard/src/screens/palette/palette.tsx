import { Dialog } from '../../parts/dialog.tsx';

export function Palette({ close }: { close: () => void }) {
  return (
    <Dialog title="Search" close={close} footer={null}>
      {null}
    </Dialog>
  );
}
