# The app alone: docker build -t unrolled . && docker run -p 8501:8501 unrolled
FROM python:3.11-slim

WORKDIR /unrolled
COPY requirements.txt requirements-lock.txt ./
RUN pip install --no-cache-dir -r requirements.txt
COPY app.py pyproject.toml ./
COPY .streamlit .streamlit
COPY assets assets
COPY engine engine
COPY pages pages

RUN useradd --create-home learner
USER learner
ENV OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1 PORT=8501
EXPOSE 8501
HEALTHCHECK --start-period=30s CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen(f'http://127.0.0.1:{os.environ[\"PORT\"]}/_stcore/health', timeout=3)"]
CMD ["sh", "-c", "exec uvicorn app:app --host 0.0.0.0 --port $PORT --log-level warning"]
