import './styles/tokens.css';
import './styles/base.css';
import './styles/frame.css';
import './styles/controls.css';
import './styles/tables.css';
import './styles/blocks.css';
import './styles/charts.css';
import './styles/overlays.css';
import './styles/texts.css';
import './styles/runs.css';
import './styles/run.css';
import './styles/split.css';
import './styles/screens.css';
import './styles/narrow.css';
import './styles/print.css';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app/app.tsx';
import { offerReload } from './parts/toast.tsx';

addEventListener('vite:preloadError', offerReload);

const root = document.getElementById('root');
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
